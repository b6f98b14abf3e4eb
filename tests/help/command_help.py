"""The commands of the command line and their examples, as its help prints them."""

import re
import subprocess
from concurrent.futures import ThreadPoolExecutor

# Commands that the list of commands does not show.
HIDDEN = ["man"]
GROUP = re.compile(r"^Commands:\n((?:  .*\n)+)", re.M)
EXAMPLES = re.compile(r"^Examples?:\n(.*)\Z", re.M | re.S)
HELP_S = 60


class HelpError(Exception):
    """The help of a command is not as it should be."""


class CommandHelp:
    """The help of all commands of a program, by the words of the command."""

    def __init__(self, program):
        self.program = program
        self.texts = {}
        with ThreadPoolExecutor(4) as pool:
            groups = [[]]
            while groups:
                groups = [group for found in pool.map(self._read, groups) for group in found]
            for command in HIDDEN:
                self._read([command])

    def _read(self, words):
        """Reads the help of these words. Returns the words of what is below them."""
        done = subprocess.run(
            # `client`: the server's program has commands of the same name.
            [self.program, "client", *words, "--help"], capture_output=True, text=True, timeout=HELP_S, check=True
        )
        if group := GROUP.search(done.stdout):
            return [[*words, name] for name in re.findall(r"^  (\S+)", group[1], re.M)]
        self.texts[" ".join(words)] = done.stdout
        return []

    def examples(self, command, columns=None):
        """The examples of a command, each in one line. A terminal breaks lines that are longer than `columns`, which
        makes two commands of one."""
        section = EXAMPLES.search(self.texts[command])
        if not section:
            raise HelpError("the help has no example")
        text = section[1].rstrip("\n")
        for line in text.splitlines():
            if columns and len(line) > columns:
                raise HelpError(f"a line of the example is longer than {columns} characters: {line}")
        examples = re.split(r"^  (?=postrider )", text, flags=re.M)[1:]
        if not examples:
            raise HelpError("no example begins with `postrider`")
        return [re.sub(r" \\\n +", " ", example.rstrip("\n")) for example in examples]
