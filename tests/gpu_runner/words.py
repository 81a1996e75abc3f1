"""A tiny model that reads and writes words: a tokenizer of a handful of them, with a chat template."""

from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from gpu_runner.model.tiny import tiny_model

WORDS = ["<end>", "user", "assistant", *"abcdefghij"]
TEMPLATE = "{% for m in messages %}{{ m['role'] }} {{ m['content'] }} {% endfor %}assistant"


def tokenizer():
    core = Tokenizer(models.WordLevel({word: i for i, word in enumerate(WORDS)}, unk_token="<end>"))
    core.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    made = PreTrainedTokenizerFast(tokenizer_object=core, eos_token="<end>", unk_token="<end>")
    made.chat_template = TEMPLATE
    return made


def worded_model(**given):
    """A tiny model over `WORDS`; its first word ends an answer."""
    model = tiny_model(vocabulary=len(WORDS), **given)
    model.tokenizer = tokenizer()
    return model
