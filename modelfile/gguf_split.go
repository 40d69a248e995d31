package modelfile

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strconv"

	"github.com/realizar/realizar/tensor"
)

// What the files of a model that llama.cpp's gguf-split has split say of
// themselves. The first has the metadata of the model, the others these keys
// alone, or a few that do not count.
const (
	splitNoKey      = "split.no"            // of this file, from 0
	splitCountKey   = "split.count"         // of files
	splitTensorsKey = "split.tensors.count" // of all files together
)

// A partName is the name of one of these files, from which the names of the
// others follow.
type partName struct {
	prefix    string
	no, count int // no is from 1
}

var partNameForm = regexp.MustCompile(`(?s)^(.*)-([0-9]{5})-of-([0-9]{5})\.gguf$`)

// parsePartName returns what the name of a file says, and whether it has the form
// of a part's name.
func parsePartName(name string) (p partName, ok bool) {
	m := partNameForm.FindStringSubmatch(name)
	if m == nil {
		return p, false
	}
	p.prefix = m[1]
	p.no, _ = strconv.Atoi(m[2]) // of five digits each
	p.count, _ = strconv.Atoi(m[3])
	return p, true
}

// exists reports whether a model has the part that the name is of.
func (p partName) exists() bool { return p.no >= 1 && p.no <= p.count }

func (p partName) String() string {
	return fmt.Sprintf("%s-%05d-of-%05d.gguf", p.prefix, p.no, p.count)
}

// sameModel reports whether names are those of parts of one model.
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

// splitCount returns the number of files that a GGUF file says it is one of; 0 and
// 1 are those of a file that is a model of its own.
func splitCount(path string, meta *Meta) (int64, error) {
	if meta.Type(splitCountKey) == "" {
		return 0, nil
	}
	return splitNumber(path, meta, splitCountKey)
}

// splitNumber returns what a file says under one of the keys of a split.
func splitNumber(path string, meta *Meta, key string) (int64, error) {
	n, ok := meta.Int(key)
	switch {
	case meta.Type(key) == "":
		return 0, splitError(path, key, "the key is missing in one of several files of a model; download the file anew")
	case !ok:
		return 0, splitError(path, key, "a value of type %s that is no integer; download the file anew", meta.Type(key))
	case n < 0:
		return 0, splitError(path, key, "%d where an integer of at least 0 is due; download the file anew", n)
	}
	return n, nil
}

func splitError(path, key, format string, args ...any) error {
	return &FormatError{File: path, Key: key, Offset: -1, Problem: fmt.Sprintf(format, args...), Err: ErrFormat}
}

// openParts opens all files of the model that the file at path is one of. That one
// is loaded: meta and tensors are its own.
func (f *File) openParts(path string, meta *Meta, tensors []*tensor.Tensor) error {
	opened, ok := parsePartName(filepath.Base(path))
	if !ok || !opened.exists() {
		n, _ := meta.Int(splitCountKey)
		return splitError(path, splitCountKey,
			"the model is in %d files, and the name of this one does not say which of them it is; give each its name, PREFIX-00001-of-%05d.gguf and so on",
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
			"%d tensors, where the %d files have %d; download all of them anew, of one version", total, opened.count, n)
	}
	return nil
}

// checkPart checks that a file says of itself what its name says.
func checkPart(path string, meta *Meta, name partName) error {
	count, err := splitNumber(path, meta, splitCountKey)
	if err != nil {
		return err
	}
	no, err := splitNumber(path, meta, splitNoKey)
	if err != nil {
		return err
	}
	const advice = "give the file its own name, or download it anew"
	if count != int64(name.count) {
		return splitError(path, splitCountKey, "%d files, where the name of this one says %d; %s", count, name.count, advice)
	}
	if no != int64(name.no-1) {
		return splitError(path, splitNoKey, "%d, which is that of part %d, where the name of the file says part %d; %s",
			no, uint64(no)+1, name.no, advice)
	}
	return nil
}
