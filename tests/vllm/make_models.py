"""Two tiny chat models with random weights, and the tokenizer they share. Runs in the venv of vLLM.

    python make_models.py FOLDER small med

small (5 M parameters) is quick, med (89 M) spends its time computing, as real models do. Random weights answer
nonsense, yet the same nonsense to the same prompt: enough to test everything around a model.
"""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path
from pydoc_data import topics

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast, Qwen2Config, Qwen2ForCausalLM

VOCABULARY = 4096
LONGEST_TOKENS = 16384
SPECIAL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
#: Heads are 64 wide, the smallest width that vLLM's attention on CPUs likes.
SIZES = {
    "small": {"hidden_size": 256, "intermediate_size": 704, "num_hidden_layers": 4},
    "med": {"hidden_size": 768, "intermediate_size": 2048, "num_hidden_layers": 13},
}
#: Weights drawn closer to zero, or shared by both embeddings, make a model that repeats one token for ever.
SPREAD = 0.05
#: ChatML, with tools the way the Hermes parser of vLLM reads them.
CHAT_TEMPLATE = """\
{%- if tools %}
    {{- '<|im_start|>system\\nCall a tool as <tool_call>{"name": ..., "arguments": ...}</tool_call>. The tools:\\n' }}
    {%- for tool in tools %}{{- tool | tojson }}{{- '\\n' }}{%- endfor %}
    {{- '<|im_end|>\\n' }}
{%- endif %}
{%- for message in messages %}
    {{- '<|im_start|>' + message.role + '\\n' }}
    {%- if message.content is string %}{{- message.content }}{%- endif %}
    {%- for call in message.tool_calls or [] %}
        {{- '<tool_call>' }}{{- call.function | tojson }}{{- '</tool_call>' }}
    {%- endfor %}
    {{- '<|im_end|>\\n' }}
{%- endfor %}
{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n' }}{%- endif %}
"""


def texts() -> Iterator[str]:
    """Prose and code that ship with every Python: its reference manual and its standard library's `ast` source."""
    yield from topics.topics.values()
    yield Path(ast.__file__).read_text("utf-8")


def tokenizer() -> PreTrainedTokenizerFast:
    """A byte-level BPE: any text has tokens, and they give it back unchanged."""
    bpe = Tokenizer(models.BPE())
    bpe.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    bpe.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=VOCABULARY, special_tokens=list(SPECIAL), initial_alphabet=alphabet)
    bpe.train_from_iterator(texts(), trainer)
    fast = PreTrainedTokenizerFast(tokenizer_object=bpe, eos_token=SPECIAL[2], pad_token=SPECIAL[0])
    fast.model_max_length = LONGEST_TOKENS
    fast.chat_template = CHAT_TEMPLATE
    return fast


def model(size: str, stop: int, pad: int) -> Qwen2ForCausalLM:
    """A Qwen2 with random weights, the same ones each time."""
    torch.manual_seed(0)
    width = SIZES[size]["hidden_size"]
    config = Qwen2Config(
        **SIZES[size],
        vocab_size=VOCABULARY,
        num_attention_heads=width // 64,
        num_key_value_heads=width // 256,
        max_position_embeddings=LONGEST_TOKENS,
        initializer_range=SPREAD,
        tie_word_embeddings=False,
        bos_token_id=None,
        eos_token_id=stop,
        pad_token_id=pad,
    )
    return Qwen2ForCausalLM(config).to(torch.bfloat16)


def main(folder: Path, sizes: list[str]) -> None:
    """Write each model with the tokenizer into a folder of its name."""
    words = tokenizer()
    for size in sizes:
        made = model(size, words.eos_token_id, words.pad_token_id)
        made.save_pretrained(folder / size)
        words.save_pretrained(folder / size)
        print(f"{size}: {made.num_parameters() / 1e6:.1f} M parameters")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
