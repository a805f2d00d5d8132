"""What the terminal shows while a run goes on."""

from __future__ import annotations

from types import TracebackType
from typing import Any, Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn


class ProgressReport:
    """A progress bar on a terminal, one line now and then elsewhere; headlines stay above it."""

    def __init__(self, steps: int, done: int, *, show: bool, console: Console | None = None) -> None:
        self.console = console or Console(stderr=True, highlight=False)
        self._lines_every = max(1, steps // 20)
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TextColumn("{task.fields[figures]}"),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
            console=self.console,
            disable=not show or not self.console.is_terminal,
        )
        self._plain = show and not self.console.is_terminal
        self._task = self._progress.add_task("training", total=steps, completed=done, figures="")

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._progress.stop()

    def say(self, message: str) -> None:
        """A line that stays."""
        self.console.print(message, soft_wrap=True)

    def step(self, metrics: dict[str, Any]) -> None:
        """Moves the bar by one step."""
        figures = (
            f"reward {metrics['reward/mean']:.3f}  correct {metrics['reward/correct']:.1%}  "
            f"length {metrics['response/length_mean']:.1f}  {metrics['tokens/per_s']:,.0f} tok/s"
        )
        self.advance(metrics["step"], figures)

    def advance(self, step: int, figures: str) -> None:
        """Moves the bar to `step`, with `figures` beside it."""
        self._progress.update(self._task, completed=step, figures=figures)
        if self._plain and step % self._lines_every == 0:
            self.say(f"step {step:>5}  {figures}")
