package modelfile

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strconv"

	"github.com/realizar/realizar/tensor"
)

// The keys that llama.cpp's gguf-split adds to each file of a split model. The first file has the
// model's metadata; the others have only these keys, or a few more that are ignored.
const (
	splitNoKey      = "split.no"            // index of this file, from 0
	splitCountKey   = "split.count"         // number of files
	splitTensorsKey = "split.tensors.count" // number of tensors in all files
)

// A partName is the parsed name of a file of a split model. The names of the other files follow
// from it.
type partName struct {
	prefix    string
	no, count int // no is from 1
}

var partNameForm = regexp.MustCompile(`(?s)^(.*)-([0-9]{5})-of-([0-9]{5})\.gguf$`)

// parsePartName parses a file name and reports whether it has the form of a part's name.
func parsePartName(name string) (p partName, ok bool) {
	m := partNameForm.FindStringSubmatch(name)
	if m == nil {
		return p, false
	}
	p.prefix = m[1]
	p.no, _ = strconv.Atoi(m[2]) // five digits: cannot fail
	p.count, _ = strconv.Atoi(m[3])
	return p, true
}

// exists reports whether the part's number is in range.
func (p partName) exists() bool { return p.no >= 1 && p.no <= p.count }

func (p partName) String() string {
	return fmt.Sprintf("%s-%05d-of-%05d.gguf", p.prefix, p.no, p.count)
}

// sameModel reports whether all names are parts of one model.
func sameModel(names []string) bool {
	first, _ := parsePartName(names[0])
	for _, name := range names {
		p, ok := parsePartName(name)
		if !ok || !p.exists() || p.prefix != first.prefix || p.count != first.count {
			return false
		}
	}
	return true
}

// splitCount returns the number of files of the model that a GGUF file belongs to. 0 and 1 mean
// that the file is a complete model.
func splitCount(path string, meta *Meta) (int64, error) {
	if meta.Type(splitCountKey) == "" {
		return 0, nil
	}
	return splitNumber(path, meta, splitCountKey)
}

// splitNumber returns the value of one of the split keys.
func splitNumber(path string, meta *Meta, key string) (int64, error) {
	n, ok := meta.Int(key)
	switch {
	case meta.Type(key) == "":
		return 0, splitError(path, key, "the key is missing in one of several files of a model; download the file again")
	case !ok:
		return 0, splitError(path, key, "a value of type %s, not an integer; download the file again", meta.Type(key))
	case n < 0:
		return 0, splitError(path, key, "%d, want an integer of at least 0; download the file again", n)
	}
	return n, nil
}

func splitError(path, key, format string, args ...any) error {
	return &FormatError{File: path, Key: key, Offset: -1, Problem: fmt.Sprintf(format, args...), Err: ErrFormat}
}

// openParts opens all files of the split model that the file at path belongs to. The file at path
// is already loaded; meta and tensors are its own.
func (f *File) openParts(path string, meta *Meta, tensors []*tensor.Tensor) error {
	opened, ok := parsePartName(filepath.Base(path))
	if !ok || !opened.exists() {
		n, _ := meta.Int(splitCountKey)
		return splitError(path, splitCountKey,
			"the model is in %d files, but the name of this one does not say which part it is; rename the files to PREFIX-00001-of-%05d.gguf and so on",
			n, n)
	}
	var total int64
	for no := 1; no <= opened.count; no++ {
		part := partName{prefix: opened.prefix, no: no, count: opened.count}
		where, its, itsTensors := path, meta, tensors
		if no != opened.no {
			where = filepath.Join(filepath.Dir(path), part.String())
			var err error
			if its, itsTensors, err = f.load(where); err != nil {
				return adviseDownload(err, fmt.Sprintf("part %d of %d, %s,", no, part.count, part))
			}
		}
		if err := checkPart(where, its, part); err != nil {
			return err
		}
		if no == 1 {
			f.meta = its
			var err error
			if total, err = splitNumber(where, its, splitTensorsKey); err != nil {
				return err
			}
		}
		if err := f.addTensors(where, itsTensors); err != nil {
			return err
		}
	}
	if n := len(f.tensors); int64(n) != total {
		return splitError(filepath.Join(filepath.Dir(path), partName{opened.prefix, 1, opened.count}.String()), splitTensorsKey,
			"%d tensors, but the %d files have %d; download all of them again, from one version", total, opened.count, n)
	}
	return nil
}

// checkPart checks that the split keys of a file match its name.
func checkPart(path string, meta *Meta, name partName) error {
	count, err := splitNumber(path, meta, splitCountKey)
	if err != nil {
		return err
	}
	no, err := splitNumber(path, meta, splitNoKey)
	if err != nil {
		return err
	}
	const advice = "rename the file, or download it again"
	if count != int64(name.count) {
		return splitError(path, splitCountKey, "%d files, but the name of this one says %d; %s", count, name.count, advice)
	}
	if no != int64(name.no-1) {
		return splitError(path, splitNoKey, "%d, which means part %d, but the name of the file says part %d; %s",
			no, uint64(no)+1, name.no, advice)
	}
	return nil
}
