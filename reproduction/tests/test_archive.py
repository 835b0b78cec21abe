"""The public archive, as a folder, a .zip and a .tar.gz; archives that are damaged, or made to do harm."""

import csv
import gzip
import io
import json
import stat
import subprocess
import sys
import tarfile
import zipfile

import numpy as np
import pytest

import import_archive as archives
from ectype.errors import DirectoryError, EctypeError, SettingError
from ectype_paper import load, names
from import_archive import import_archive

HEADER = "\tf1\tf2\tclase"


def dat(n=20, first=1, classes=2):
    rows = [f"{first + i}\t{0.5 * i}\t-1e-{i % 3}\t{i % classes}" for i in range(n)]
    return "\n".join([HEADER, *rows]) + "\n"


GOOD = {
    "data/iris/iris_R.dat": dat(),
    "data/iris/iris.arff": "not looked at",
    "data/wine/wine_train_R.dat": dat(12, classes=3),
    "data/wine/wine_test_R.dat": dat(9, classes=3),
    "data/unknown/unknown_R.dat": dat(),
    "data/README": "hello",
}


def as_folder(path, files):
    for name, text in files.items():
        (path / "in" / name).parent.mkdir(parents=True, exist_ok=True)
        (path / "in" / name).write_text(text)
    return path / "in"


def as_zip(path, files):
    with zipfile.ZipFile(path / "in.zip", "w", zipfile.ZIP_DEFLATED) as file:
        for name, text in files.items():
            file.writestr(name, text)
    return path / "in.zip"


def as_tar(path, files):
    with tarfile.open(path / "in.tar.gz", "w:gz") as file:
        for name, text in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(text.encode())
            file.addfile(info, io.BytesIO(text.encode()))
    return path / "in.tar.gz"


KINDS = {"folder": as_folder, "zip": as_zip, "tar": as_tar}


@pytest.mark.parametrize("pack", KINDS.values(), ids=KINDS)
def test_an_archive_becomes_a_folder_that_loads(tmp_path, pack):
    found = import_archive(pack(tmp_path, GOOD), tmp_path / "out", only=("iris", "wine", "magic"))
    assert found == names(tmp_path / "out") == ("iris", "wine")
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["index.csv", "iris.csv.gz", "wine.csv.gz"]
    iris, wine = (load(tmp_path / "out", name) for name in found)
    assert (iris.d, iris.n_classes, len(iris.y_train), len(iris.y_test)) == (2, 2, 16, 4)
    assert (wine.n_classes, len(wine.y_train) + len(wine.y_test)) == (3, 21)
    lines = gzip.decompress((tmp_path / "out" / "iris.csv.gz").read_bytes()).decode().splitlines()
    assert lines[:3] == ["f0,f1,label", "0.0,-1e-0,0", "0.5,-1e-1,1"]
    with open(tmp_path / "out" / "index.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [(row["name"], row["samples"], row["classes"], row["features"]) for row in rows] == [
        ("iris", "20", "2", "2"),
        ("wine", "21", "3", "2"),
    ]
    assert "wine_train_R.dat" in rows[1]["source"].split(" + ")[0]
    assert "wine_test_R.dat" in rows[1]["source"].split(" + ")[1]


def test_the_same_archive_gives_the_same_bytes(tmp_path):
    path = as_zip(tmp_path, GOOD)
    for name in ("one", "two"):
        import_archive(path, tmp_path / name)
    for file in (tmp_path / "one").iterdir():
        assert file.read_bytes() == (tmp_path / "two" / file.name).read_bytes()
    assert names(tmp_path / "one") == ("iris", "unknown", "wine")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (f"{HEADER}\n1 0 0 0\n2 1 x 1\n", r"iris_R.dat, line 3: expected finite numbers, found 'x'"),
        (f"{HEADER}\n1 0 0 0\n\n2 1 nan 1\n", r"line 4: expected finite numbers, found 'nan'"),
        (f"{HEADER}\n1 0 0 0\n2 1 1\n", r"line 3: expected a row's number and 3 numbers, found 3 cells"),
        ("f1 f2 class\n1 0 0 0\n", r"line 1: expected a header such as f1 f2 clase"),
        ("", r"line 1: expected a header"),
        (f"{HEADER}\n1 0 0 0\n2 0 é 1\n", r"line 3: expected plain text, found the byte 0xc3"),
        (f"{HEADER}\n1 0 0 0\n2 0 1 0\n", r"at least two classes, found 2 rows of 1"),
        (HEADER + "\n", r"0 rows of 0"),
    ],
)
def test_a_corrupt_file_is_named_with_its_line_and_nothing_is_written(tmp_path, text, says):
    for pack in KINDS.values():
        with pytest.raises(EctypeError, match=says):
            import_archive(pack(tmp_path, {"data/iris/iris_R.dat": text}), tmp_path / "deep" / "out")
        assert not (tmp_path / "deep" / "out").exists()
        assert not list((tmp_path / "deep").glob(".*"))


@pytest.mark.parametrize("pack", [as_zip, as_tar])
@pytest.mark.parametrize(
    "path",
    ["../iris/iris_R.dat", "/iris/iris_R.dat", "a/../../iris/iris_R.dat", "..\\iris_R.dat", "C:/iris/iris_R.dat"],
)
def test_paths_that_lead_out_are_refused(tmp_path, pack, path):
    with pytest.raises(EctypeError, match="paths that stay inside the archive"):
        import_archive(pack(tmp_path, {**GOOD, path: dat()}), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_links_are_refused(tmp_path):
    (tmp_path / "secret").write_text(dat())
    folder = as_folder(tmp_path, GOOD)
    (folder / "data" / "magic").mkdir()
    (folder / "data" / "magic" / "magic_R.dat").symlink_to(tmp_path / "secret")
    with pytest.raises(EctypeError, match=r"magic_R.dat: expected a file, found a link"):
        import_archive(folder, tmp_path / "out")
    with tarfile.open(tmp_path / "links.tar", "w") as file:
        info = tarfile.TarInfo("magic/magic_R.dat")
        info.type, info.linkname = tarfile.SYMTYPE, str(tmp_path / "secret")
        file.addfile(info)
    with zipfile.ZipFile(tmp_path / "links.zip", "w") as file:
        link = zipfile.ZipInfo("magic/magic_R.dat")
        link.external_attr = (stat.S_IFLNK | 0o777) << 16
        file.writestr(link, str(tmp_path / "secret"))
    for name in ("links.tar", "links.zip"):
        with pytest.raises(EctypeError, match="expected a file, found a link"):
            import_archive(tmp_path / name, tmp_path / "out")


@pytest.mark.parametrize("limit", ["MOST_BYTES", "MOST_IN_ALL", "MOST_MEMBERS"])
@pytest.mark.parametrize("pack", KINDS.values(), ids=KINDS)
def test_archives_that_unpack_to_too_much_are_refused(tmp_path, monkeypatch, pack, limit):
    monkeypatch.setattr(archives, limit, {"MOST_BYTES": 100, "MOST_IN_ALL": 500, "MOST_MEMBERS": 2}[limit])
    with pytest.raises(EctypeError, match=r"at most .* found more"):
        import_archive(pack(tmp_path, GOOD), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_bomb_is_not_unpacked(tmp_path, monkeypatch):
    """A thousandfold: what is read is bounded, whatever the archive says of its size."""
    with (
        zipfile.ZipFile(tmp_path / "bomb.zip", "w", zipfile.ZIP_DEFLATED) as file,
        file.open("iris/iris_R.dat", "w", force_zip64=True) as member,
    ):
        for _ in range(8):
            member.write(bytes(2**20))
    assert (tmp_path / "bomb.zip").stat().st_size < 2**14
    monkeypatch.setattr(archives, "MOST_BYTES", 2**20)
    with pytest.raises(EctypeError, match="bytes in a file"):
        import_archive(tmp_path / "bomb.zip", tmp_path / "out")


def test_problems_with_parts_missing_or_twice(tmp_path):
    half = {"wine/wine_train_R.dat": dat()}
    with pytest.raises(EctypeError, match=r"wine_test_R.dat beside its other part, found nothing"):
        import_archive(as_zip(tmp_path, half), tmp_path / "out")
    with pytest.raises(EctypeError, match=r"every problem once, found wine again"):
        import_archive(as_zip(tmp_path, {**half, "wine/wine_R.dat": dat()}), tmp_path / "out")
    with pytest.raises(EctypeError, match=r"every problem once, found iris again"):
        import_archive(as_tar(tmp_path, {"iris/iris_R.dat": dat(), "b/iris/iris_R.dat": dat()}), tmp_path / "out")
    wide = HEADER.replace("clase", "f3 clase") + "\n1 0 0 0 1\n"
    with pytest.raises(EctypeError, match=r"_test_R.dat: expected 3 columns, as in .*_train_R.dat, found 4"):
        import_archive(as_zip(tmp_path, {**half, "wine/wine_test_R.dat": wide}), tmp_path / "out")


def test_what_is_no_archive(tmp_path):
    (tmp_path / "text").write_text("hello")
    whole = as_tar(tmp_path, {**GOOD, "data/iris/iris_R.dat": dat(5000)}).read_bytes()
    (tmp_path / "cut.tar.gz").write_bytes(whole[: len(whole) // 2])
    for name in ("text", "nowhere", "cut.tar.gz"):
        with pytest.raises(SettingError, match=rf"{name}: expected a .zip, a .tar.gz, or a folder"):
            import_archive(tmp_path / name, tmp_path / "out")
    (tmp_path / "empty").mkdir()
    with pytest.raises(SettingError, match="no such file of a problem"):
        import_archive(tmp_path / "empty", tmp_path / "out")


def test_a_directory_with_other_files_is_left_alone(tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine.txt").write_text("mine")
    with pytest.raises(DirectoryError, match="a new or empty directory"):
        import_archive(as_zip(tmp_path, GOOD), tmp_path / "out")
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["mine.txt"]
    (tmp_path / "out" / "mine.txt").unlink()
    assert "iris" in import_archive(as_zip(tmp_path, GOOD), tmp_path / "out")


def test_the_program(tmp_path):
    arguments = [archives.__file__, as_zip(tmp_path, GOOD), "--out", tmp_path / "out", "--json"]
    out = subprocess.run([sys.executable, *arguments], capture_output=True, text=True)
    assert out.returncode == 0, out.stderr
    document = json.loads(out.stdout)
    assert document["problems"] == ["iris", "wine"]
    assert len(document["missing"]) == 57
    again = subprocess.run([sys.executable, *arguments], capture_output=True, text=True)
    assert again.returncode == 2
    assert "a new or empty directory" in again.stderr
    rows = np.vstack([load(tmp_path / "out", "iris").X_train, load(tmp_path / "out", "iris").X_test])
    assert rows.shape == (20, 2)
