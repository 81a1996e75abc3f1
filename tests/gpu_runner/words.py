"""A tiny model that reads and writes words, by a tokenizer of a handful of them; saved to folders, for commands."""

from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from exact.cli import options
from gpu_runner.cli.main import app
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


def saved(model, place):
    """Save a worded model to a folder that a command can load."""
    model.model.config.eos_token_id = 0
    model.model.save_pretrained(place)
    model.tokenizer.save_pretrained(place)
    return place


def run(capsys, *arguments):
    """Exit code, stdout and stderr of a command line."""
    code = options.run(app, [str(argument) for argument in arguments])
    captured = capsys.readouterr()
    return code, captured.out, captured.err
