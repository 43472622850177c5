"""Lists of public strings with their frequencies: words of the languages of wordfreq, and host
names. The shipped prior was made from all of them.

    pip install wordfreq==3.1.1 disposable-email-domains==0.0.293
    python benchmarks/common/wordlists.py FOLDER

writes FOLDER/words_LANGUAGE.tsv for each language, the 60,000 commonest words at most, and
FOLDER/hosts.tsv, which deniable_estimator/analyses/discovery/make_prior.py reads.
"""

from __future__ import annotations

import sys
from pathlib import Path

import wordfreq
from disposable_email_domains import blocklist

MOST = 60_000
"""Words of a language."""


def main(folder: Path) -> None:
    """Write the lists into the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for language in sorted(wordfreq.available_languages("small")):
        shares = wordfreq.get_frequency_dict(language, "small")
        ordered = sorted(shares.items(), key=lambda each: (-each[1], each[0]))[:MOST]
        write(folder / f"words_{language}.tsv", ordered)
    write(folder / "hosts.tsv", [(name, 1.0) for name in sorted(blocklist)])


def write(path: Path, strings: list[tuple[str, float]]) -> None:
    """One string on each line, and its frequency after a tab."""
    path.write_text("".join(f"{text}\t{share:.3g}\n" for text, share in strings), "utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
