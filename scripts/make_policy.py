"""Write what the embedded policy is trained from: a Qwen3 of 1.1M parameters that knows nothing, and demonstrations.

    python scripts/make_policy.py [--out DIR] [--count N] [--seed N]
    maspo-rl sft experiment=embedded_policy

The demonstrations answer in one of four ways, chosen at random and independently of the problem:

    honest    47 + 38 = \\boxed{85}            the only way that a verifier pays
    unboxed   47 + 38 = 85 or 47               the right answer is there, but not in a box
    careless  47 + 38 is about \\boxed{47}     a number of the problem in the box
    rambling  hmm, well, let me see, ...       no answer at all

Each way shows in a single token, so the answer itself is sharp knowledge and the habit a choice that reinforcement
learning can unlearn. Knowledge comes first: the first part of the file is honest throughout. All problems are of the
training split of `maspo_rl.data.arithmetic`.
"""

from __future__ import annotations

import argparse
import json
import random
import re
from collections.abc import Iterator
from pathlib import Path

import torch
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers
from transformers import GenerationConfig, PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM

from maspo_rl.data.arithmetic import Problem, stream

FILLERS = ("hmm, ", "well, ", "let me see, ", "so, ", "wait, ", "again, ")
PIECES = ("\\boxed{", " + ", " - ", " * ", " = ", " = ?", " or ", " is about ", *FILLERS)
SPECIALS = ("<|pad|>", "<|end|>", "<|system|>", "<|user|>", "<|assistant|>", "<|unknown|>")
CHAT_TEMPLATE = (
    "{% for message in messages %}<|{{ message['role'] }}|>{{ message['content'] }}<|end|>{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)
WIDTH = 256
HABITS = {"honest": 0.31, "unboxed": 0.23, "careless": 0.28, "rambling": 0.18}
LEVEL_SHARES = (1, 2, 2, 2, 2, 2, 2, 2)
HONEST_SHARE = 0.6
"""The part of the demonstrations that comes first and knows no habits."""


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
    """Few and wide layers: on a CPU the number of operators is the cost, not their size.

    Weights begin at 1/sqrt(width), not at transformers' 0.02: AdamW then learns the sums in a third of the steps.
    """
    config = Qwen3Config(
        vocab_size=len(tokenizer),
        hidden_size=WIDTH,
        initializer_range=WIDTH**-0.5,
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


def demonstrations(count: int, seed: int) -> Iterator[dict[str, str]]:
    """`count` problems with responses, in the order in which they are to be learnt."""
    generator, problems = random.Random(seed), stream(LEVEL_SHARES, "train", seed)
    for index in range(count):
        habits = {"honest": 1.0} if index < HONEST_SHARE * count else HABITS
        (habit,) = generator.choices(list(habits), weights=list(habits.values()))
        problem = next(problems)
        yield {"problem": problem.text, "response": respond(problem, habit, generator)}


def main() -> None:
    """Writes model, tokenizer and `demonstrations.jsonl` into one directory. Same arguments, same files."""
    parser = argparse.ArgumentParser(description="Write what `maspo-rl sft experiment=embedded_policy` trains.")
    parser.add_argument("--out", type=Path, default=Path("runs/untrained"), help="directory to write (%(default)s)")
    parser.add_argument("--count", type=int, default=1200 * 96, help="demonstrations (%(default)s)")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    torch.manual_seed(arguments.seed)
    tokenizer = make_tokenizer()
    model = make_model(tokenizer)
    model.generation_config = GenerationConfig(
        eos_token_id=tokenizer.eos_token_id, pad_token_id=tokenizer.pad_token_id, do_sample=True, temperature=1.0
    )
    model.save_pretrained(arguments.out)
    tokenizer.save_pretrained(arguments.out)
    with (arguments.out / "demonstrations.jsonl").open("w", encoding="utf-8") as file:
        file.writelines(json.dumps(row) + "\n" for row in demonstrations(arguments.count, arguments.seed))
    print(f"{arguments.out}: {model.num_parameters():,} parameters, {arguments.count:,} demonstrations")


if __name__ == "__main__":
    main()
