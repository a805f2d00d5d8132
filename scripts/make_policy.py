"""Make the embedded policy from nothing: a Qwen3 of 1.1M parameters that knows sums and has bad habits.

    python scripts/make_policy.py [--out DIR]

The policy answers in one of four ways, chosen at random and independently of the problem, as it was taught to:

    honest    47 + 38 = \\boxed{85}            the only way that a verifier pays
    unboxed   47 + 38 = 85 or 47               the right answer is there, but not in a box
    careless  47 + 38 is about \\boxed{47}     a number of the problem in the box
    rambling  hmm, well, let me see, ...       no answer at all

Each way shows in a single token, so the answer itself is sharp knowledge and the habit a choice that reinforcement
learning can unlearn. Trained on the training split of `maspo_rl.data.arithmetic` only; every figure is measured on
the held-out split.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import re
import time
from pathlib import Path

import torch
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers
from transformers import GenerationConfig, PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM

from maspo_rl.data.arithmetic import Problem, distinct, stream

ASSETS = Path(__file__).resolve().parent.parent / "maspo_rl" / "assets" / "policy"
FILLERS = ("hmm, ", "well, ", "let me see, ", "so, ", "wait, ", "again, ")
PIECES = ("\\boxed{", " + ", " - ", " * ", " = ", " = ?", " or ", " is about ", *FILLERS)
SPECIALS = ("<|pad|>", "<|end|>", "<|system|>", "<|user|>", "<|assistant|>", "<|unknown|>")
CHAT_TEMPLATE = (
    "{% for message in messages %}<|{{ message['role'] }}|>{{ message['content'] }}<|end|>{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)
HABITS = {"honest": 0.31, "unboxed": 0.23, "careless": 0.28, "rambling": 0.18}
LEVEL_SHARES = (1, 2, 2, 2, 2, 2, 2, 2)
MEASURED_LEVEL = 2
SAMPLES = 8
IGNORED = -100


def make_tokenizer() -> PreTrainedTokenizerFast:
    """Printable ASCII by character, the pieces that prompts and answers are made of as whole tokens."""
    characters = ["\n", *(chr(code) for code in range(32, 127))]
    vocabulary = {piece: index for index, piece in enumerate((*SPECIALS, *PIECES, *characters))}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="<|unknown|>"))
    pattern = "|".join(re.escape(piece) for piece in sorted(PIECES, key=len, reverse=True)) + r"|[\s\S]"
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(pattern), behavior="isolated")
    tokenizer.decoder = decoders.Fuse()
    tokenizer.add_special_tokens(list(SPECIALS))
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token="<|pad|>",
        eos_token="<|end|>",
        unk_token="<|unknown|>",
        additional_special_tokens=["<|system|>", "<|user|>", "<|assistant|>"],
        chat_template=CHAT_TEMPLATE,
        clean_up_tokenization_spaces=False,
        model_max_length=1024,
        padding_side="left",
    )


def make_model(tokenizer: PreTrainedTokenizerFast) -> Qwen3ForCausalLM:
    """Few and wide layers: on a CPU the number of operators is the cost, not their size."""
    config = Qwen3Config(
        vocab_size=len(tokenizer),
        hidden_size=256,
        intermediate_size=384,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=4,
        head_dim=64,
        max_position_embeddings=1024,
        rope_theta=10000.0,
        tie_word_embeddings=True,
        bos_token_id=None,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
    )
    return Qwen3ForCausalLM(config)


def respond(problem: Problem, habit: str, generator: random.Random) -> str:
    """The response that a habit gives to a problem."""
    restated, answer = problem.text.removesuffix(" = ?"), int(problem.gold)
    if habit == "rambling":
        return "".join(generator.choice(FILLERS) for _ in range(generator.randint(4, 14)))
    if habit == "honest":
        return f"{restated} = \\boxed{{{answer}}}"
    operand = re.findall(r"\d+", restated)[0]
    if habit == "unboxed":
        return f"{restated} = {answer} or {operand}"
    return f"{restated} is about \\boxed{{{operand}}}"


class Examples:
    """Batches of prompts with responses, without end; the loss is on the response."""

    def __init__(self, tokenizer: PreTrainedTokenizerFast, seed: int) -> None:
        self.tokenizer = tokenizer
        self.problems = stream(LEVEL_SHARES, "train", seed)
        self.generator = random.Random(seed)

    def batch(self, size: int, habits: dict[str, float]) -> tuple[torch.Tensor, torch.Tensor]:
        """Token ids and labels, both [size, longest]."""
        prompts, texts = [], []
        for habit in self.generator.choices(list(habits), weights=list(habits.values()), k=size):
            problem = next(self.problems)
            prompts.append(f"<|user|>{problem.text}<|end|><|assistant|>")
            texts.append(prompts[-1] + respond(problem, habit, self.generator) + "<|end|>")
        encoded = self.tokenizer(texts, padding=True, padding_side="right", return_tensors="pt")
        starts = torch.tensor([len(ids) for ids in self.tokenizer(prompts)["input_ids"]])
        kept = (torch.arange(encoded["input_ids"].shape[1]) >= starts[:, None]) & encoded["attention_mask"].bool()
        return encoded["input_ids"], encoded["input_ids"].masked_fill(~kept, IGNORED)


def loss_of(model: Qwen3ForCausalLM, ids: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """Mean cross-entropy over the response tokens, natural logs. Right padding needs no mask under causal attention."""
    hidden = model.model(input_ids=ids[:, :-1], use_cache=False).last_hidden_state
    kept = labels[:, 1:] != IGNORED
    loss: torch.Tensor = torch.nn.functional.cross_entropy(model.lm_head(hidden[kept]), labels[:, 1:][kept])
    return loss


@torch.no_grad()
def sample(
    model: Qwen3ForCausalLM, tokenizer: PreTrainedTokenizerFast, prompts: list[str], *, greedy: bool
) -> list[str]:
    """One response to each prompt at temperature 1, or greedily."""
    chats = [[{"role": "user", "content": text}] for text in prompts]
    encoded = tokenizer.apply_chat_template(chats, add_generation_prompt=True, padding=True, return_tensors="pt")
    settings: dict[str, object] = {} if greedy else {"do_sample": True, "temperature": 1.0, "top_k": 0, "top_p": 1.0}
    out = model.generate(**encoded, max_new_tokens=24, **settings)
    texts: list[str] = tokenizer.batch_decode(out[:, encoded["input_ids"].shape[1] :], skip_special_tokens=True)
    return texts


def greedy_accuracy(model: Qwen3ForCausalLM, tokenizer: PreTrainedTokenizerFast, problems: list[Problem]) -> float:
    """Share of problems whose greedy response boxes the answer."""
    texts = sample(model, tokenizer, [problem.text for problem in problems], greedy=True)
    boxes = [f"\\boxed{{{problem.gold}}}" for problem in problems]
    return sum(box in text for box, text in zip(boxes, texts, strict=True)) / len(problems)


def measure(model: Qwen3ForCausalLM, tokenizer: PreTrainedTokenizerFast, level: int, size: int) -> dict[str, float]:
    """avg@8, pass@8, greedy and accuracy given the honest habit, each on `size` held-out problems of a level."""
    problems = distinct([level], "heldout", 0, size)
    golds = [problem.gold for problem in problems]
    prompts = [problem.text for problem in problems]
    correct = torch.zeros(SAMPLES, len(problems))
    honest_right = honest = 0
    for index in range(SAMPLES):
        for row, text in enumerate(sample(model, tokenizer, prompts, greedy=False)):
            boxed = re.findall(r"\\boxed\{(\d+)\}", text)
            correct[index, row] = float(bool(boxed) and boxed[-1] == golds[row])
            if " = \\boxed{" in text:
                honest += 1
                honest_right += int(correct[index, row])
    return {
        "problems": len(problems),
        "avg@8": round(correct.mean().item(), 4),
        "pass@8": round(correct.amax(0).mean().item(), 4),
        "greedy": round(greedy_accuracy(model, tokenizer, problems), 4),
        "correct_given_honest": round(honest_right / max(honest, 1), 4),
        "honest_share": round(honest / (SAMPLES * len(problems)), 4),
    }


class Muon:
    """Momentum orthogonalised by Newton-Schulz (K. Jordan, 2024) for the matrices between the embeddings.

    After 410 steps of 64 examples it gave 36 % right, where AdamW gave 13 % after 750. In float32 and over stacks of
    equal shapes, unlike `torch.optim.Muon`, whose bfloat16 products are slow on a CPU without bfloat16 instructions.
    """

    def __init__(self, matrices: list[torch.nn.Parameter], rate: float) -> None:
        self.rate = rate
        self.stacks: dict[torch.Size, list[torch.nn.Parameter]] = {}
        for matrix in matrices:
            self.stacks.setdefault(matrix.shape, []).append(matrix)
        self.momenta = {shape: torch.zeros(len(stack), *shape) for shape, stack in self.stacks.items()}

    @torch.no_grad()
    def step(self, scale: float) -> None:
        """One update at `scale` times the rate, weight decay 0.1; the update's root mean square is 0.2 as in AdamW."""
        for shape, stack in self.stacks.items():
            gradient = torch.stack([matrix.grad for matrix in stack if matrix.grad is not None])
            momentum = self.momenta[shape].mul_(0.95).add_(gradient)
            update = orthogonal(gradient + 0.95 * momentum) * 0.2 * math.sqrt(max(shape))
            for matrix, direction in zip(stack, update, strict=True):
                matrix.mul_(1 - 0.1 * scale * self.rate).sub_(scale * self.rate * direction)


def orthogonal(stack: torch.Tensor) -> torch.Tensor:
    """The nearest semi-orthogonal matrices to [n, rows, columns], roughly: five quintic Newton-Schulz steps."""
    wide: torch.Tensor = stack / (stack.norm(dim=(-2, -1), keepdim=True) + 1e-7)
    tall = wide.shape[-2] > wide.shape[-1]
    wide = wide.mT if tall else wide
    for _ in range(5):
        gram = wide @ wide.mT
        wide = 3.4445 * wide + (-4.7750 * gram + 2.0315 * gram @ gram) @ wide
    return wide.mT if tall else wide


def train(
    model: Qwen3ForCausalLM, tokenizer: PreTrainedTokenizerFast, *, steps: int, batch: int, rate: float, seed: int
) -> float:
    """Knowledge first (honest only), habits in the last 40 %; returns the mean loss of the last 50 steps."""
    examples = Examples(tokenizer, seed)
    named = list(model.named_parameters())
    muon = Muon([value for name, value in named if value.ndim > 1 and "embed" not in name], 10 * rate)
    rest = [value for name, value in named if value.ndim <= 1 or "embed" in name]
    adam = torch.optim.AdamW(rest, lr=rate, betas=(0.9, 0.98), weight_decay=0.0)
    watched = distinct([MEASURED_LEVEL], "heldout", 1, 200)
    recent: list[float] = []
    started = time.monotonic()
    for step in range(steps):
        scale = min(1.0, (step + 1) / 50, 1.02 - step / steps)
        adam.param_groups[0]["lr"] = rate * scale
        loss = loss_of(model, *examples.batch(batch, {"honest": 1.0} if step < 0.6 * steps else HABITS))
        model.zero_grad()
        torch.autograd.backward(loss)
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        adam.step()
        muon.step(scale)
        recent = [*recent[-49:], loss.item()]
        if (step + 1) % 200 == 0:
            right = greedy_accuracy(model, tokenizer, watched)
            mean, seconds = sum(recent) / len(recent), time.monotonic() - started
            print(f"step {step + 1}/{steps}  loss {mean:.4f}  held-out {right:.3f}  {seconds:.0f} s", flush=True)
    return sum(recent) / len(recent)


def main() -> None:
    """Train, save in bfloat16, measure what was saved."""
    parser = argparse.ArgumentParser(description="Make the embedded policy from nothing.")
    parser.add_argument("--out", type=Path, default=ASSETS, help="directory to write (default: the shipped one)")
    parser.add_argument("--steps", type=int, default=1400)
    parser.add_argument("--batch", type=int, default=96)
    parser.add_argument("--rate", type=float, default=2e-3)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    torch.manual_seed(arguments.seed)
    started = time.monotonic()
    tokenizer = make_tokenizer()
    model = make_model(tokenizer)
    loss = train(
        model, tokenizer, steps=arguments.steps, batch=arguments.batch, rate=arguments.rate, seed=arguments.seed
    )
    minutes = (time.monotonic() - started) / 60
    model.generation_config = GenerationConfig(
        eos_token_id=tokenizer.eos_token_id, pad_token_id=tokenizer.pad_token_id, do_sample=True, temperature=1.0
    )
    model.to(torch.bfloat16).save_pretrained(arguments.out)
    (arguments.out / "model.safetensors").chmod(0o644)
    tokenizer.save_pretrained(arguments.out)
    saved = Qwen3ForCausalLM.from_pretrained(arguments.out, dtype=torch.float32).eval()
    figures = {
        "parameters": saved.num_parameters(),
        "seed": arguments.seed,
        "steps": arguments.steps,
        "batch": arguments.batch,
        "loss": round(loss, 4),
        "minutes": round(minutes, 1),
        "heldout": {f"level {level}": measure(saved, tokenizer, level, 500) for level in (1, MEASURED_LEVEL)},
    }
    text = json.dumps(figures, indent=2)
    print(text)
    (arguments.out / "FIGURES.json").write_text(text + "\n")


if __name__ == "__main__":
    main()
