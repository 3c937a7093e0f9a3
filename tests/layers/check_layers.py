"""Checks every #include of the tree against the layer table (README, "Architecture"). Exit 1 and one line for each break.

usage: check_layers.py ROOT
"""
import pathlib
import re
import sys

# folder -> what it may include from the project, and whether Qt Core, Qt GUI / Widgets, ATen and other libraries are open to it.
# An entry ending in ".h" is that header alone. Longest folder name wins.
LAYERS = {
    "model/ir": {"project": ["model/ir"], "libraries": ["std"]},
    "model/text": {"project": ["model/ir", "model/text"], "libraries": ["std"]},
    "model/io": {"project": ["model/ir", "model/text", "model/io"], "libraries": ["std", "json", "zip"]},
    "model/exec": {"project": ["model/ir", "model/text", "model/io", "model/exec"], "libraries": ["std", "json", "zip", "aten"]},
    "model/layout": {"project": ["model/ir", "model/layout"], "libraries": ["std", "graphviz"]},
    "passes": {"project": ["model", "passes"], "libraries": ["std", "json"]},
    "views": {"project": ["model/ir", "model/text", "model/layout", "passes/pass.h", "views"],
              "libraries": ["std", "qtcore", "qtgui", "plot", "editor"]},
    "app/document": {"project": ["model", "passes", "app/document"], "libraries": ["std", "json", "qtcore"]},
    "app/cli": {"project": ["model", "passes", "app/document", "app/cli"], "libraries": ["std", "json", "qtcore", "cli11"]},
    "app": {"project": ["model", "passes", "views", "app"], "libraries": ["std", "json", "qtcore", "qtgui", "plot"]},
}
# Headers of model and passes may not name a library at all: it would reach everyone who includes them.
PRIVATE_HEADERS = {"aten_pch.h", "aten_bridge.h"}

QT_CORE = {"QAtomicInt", "QBuffer", "QByteArray", "QCoreApplication", "QCryptographicHash", "QDateTime", "QDir", "QElapsedTimer",
           "QEventLoop", "QFile", "QFileInfo", "QHash", "QJsonArray", "QJsonDocument", "QJsonObject", "QList", "QLockFile", "QMap", "QMetaObject",
           "QMutex", "QObject", "QPointer", "QProcess", "QProcessEnvironment", "QRegularExpression", "QSaveFile", "QSet", "QSettings", "QStandardPaths",
           "QString", "QStringList", "QTemporaryDir", "QTemporaryFile", "QThread", "QThreadPool", "QTimer", "QUrl", "QVariant", "QVector", "QtGlobal"}

LIBRARIES = [
    (r"^(ATen|c10|torch|caffe2)/", "aten"),
    (r"^nlohmann/", "json"),
    (r"^zip\.h$", "zip"),
    (r"^(graphviz/|gvc\.h|cgraph\.h)", "graphviz"),
    (r"^CLI/", "cli11"),
    (r"^qcustomplot\.h$", "plot"),
    (r"^Qsci/", "editor"),
    (r"^(sys/|unistd\.h|fcntl\.h|signal\.h|execinfo\.h)", "std"),
]


def library_of(name):
    for pattern, library in LIBRARIES:
        if re.match(pattern, name):
            return library
    if re.match(r"^Q[A-Za-z]", name) or name.startswith("Qt"):
        return "qtcore" if name.split("/")[-1] in QT_CORE or name.startswith("QtCore/") else "qtgui"
    return "std"


def allowed(include, entries):
    return any(include == e if e.endswith(".h") else include.startswith(e + "/") for e in entries)


def check(root):
    problems = []
    for path in sorted(root.glob("**/*")):
        relative = path.relative_to(root).as_posix()
        layer = max((f for f in LAYERS if relative.startswith(f + "/")), key=len, default=None)
        if layer is None or path.suffix not in (".h", ".cpp"):
            continue
        rule = LAYERS[layer]
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            match = re.match(r'\s*#\s*include\s+(?:"([^"]+)"|<([^>]+)>)', line)
            if not match:
                continue
            where = f"{relative}:{number}"
            if match[1] and "/" in match[1] and (root / match[1]).parent.is_dir():
                if not allowed(match[1], rule["project"]):
                    problems.append(f"{where}: {layer} may not include {match[1]}")
                continue
            library = library_of(match[1] or match[2])
            if library not in rule["libraries"]:
                problems.append(f"{where}: {layer} may not use {match[1] or match[2]} ({library})")
            elif (path.suffix == ".h" and path.name not in PRIVATE_HEADERS and layer.split("/")[0] in ("model", "passes")
                    and library != "std"):
                problems.append(f"{where}: a header of {layer} may not use {match[1] or match[2]}; keep it in the .cpp file")
    return problems


def main():
    if len(sys.argv) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    problems = check(pathlib.Path(sys.argv[1]))
    print("\n".join(problems) if problems else "layers: every include is allowed")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
