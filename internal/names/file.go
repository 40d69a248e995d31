package names

import (
	"fmt"
	"path"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// Limits on a file's path in a repository and on each part of the path, in bytes.
const (
	maxFilePath = 1024
	maxFilePart = 255
)

// reserved are the device names of Windows, which are reserved with any extension.
var reserved = map[string]bool{
	"con": true, "prn": true, "aux": true, "nul": true, "com1": true, "com2": true, "com3": true, "com4": true, "com5": true, "com6": true, "com7": true,
	"com8": true, "com9": true, "lpt1": true, "lpt2": true, "lpt3": true, "lpt4": true, "lpt5": true, "lpt6": true, "lpt7": true, "lpt8": true, "lpt9": true,
}

// CheckFile returns an error if a path from a repository or an archive leads out of its folder or
// has a special meaning on some system.
func CheckFile(name string) error {
	wrong := func(why string) error {
		return fmt.Errorf("a file called %.200q: %s; want a path within the folder, such as weights/model.gguf", name, why)
	}
	switch {
	case name == "":
		return wrong("the name is empty")
	case len(name) > maxFilePath:
		return wrong(fmt.Sprintf("%d bytes, more than %d", len(name), maxFilePath))
	case !utf8.ValidString(name):
		return wrong("it is not UTF-8")
	case strings.ContainsFunc(name, unicode.IsControl):
		return wrong("it has a control character")
	case strings.ContainsAny(name, `\:*?"<>|`):
		return wrong(`it has one of \ : * ? " < > |`)
	case path.IsAbs(name):
		return wrong("it is absolute")
	}
	for part := range strings.SplitSeq(name, "/") {
		stem, _, _ := strings.Cut(strings.ToLower(part), ".")
		switch {
		case part == "" || part == "." || part == "..":
			return wrong(fmt.Sprintf("it has the part %q", part))
		case len(part) > maxFilePart:
			return wrong(fmt.Sprintf("a part of it has %d bytes, more than %d", len(part), maxFilePart))
		case strings.HasSuffix(part, ".") || strings.HasSuffix(part, " "):
			return wrong("a part of it ends in a dot or a space")
		case reserved[stem]:
			return wrong(fmt.Sprintf("%q is a device of Windows", part))
		}
	}
	return nil
}

// fold returns the form of a path that case-insensitive, Unicode-normalizing file systems compare.
func fold(name string) string { return strings.ToLower(strings.ToUpper(norm.NFC.String(name))) }

// CheckFiles returns an error if a path is invalid, if two paths differ only in case or in Unicode
// normalization, or if one path is a folder of another: the files could not be stored in one folder
// on every system.
func CheckFiles(list []string) error {
	seen := make(map[string]string, len(list))
	for _, name := range list {
		if err := CheckFile(name); err != nil {
			return err
		}
		folded := fold(name)
		if other, ok := seen[folded]; ok {
			return fmt.Errorf("the files %q and %q are one file on systems where case does not count; name the one that is meant, or ask the makers to rename one", other, name)
		}
		seen[folded] = name
	}
	for folded, name := range seen {
		for dir := path.Dir(folded); dir != "."; dir = path.Dir(dir) {
			if other, ok := seen[dir]; ok {
				return fmt.Errorf("%q is both a file and a folder of %q; ask the makers to rename one", other, name)
			}
		}
	}
	return nil
}
