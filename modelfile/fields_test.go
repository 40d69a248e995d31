package modelfile_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/realizar/realizar/modelfile"
)

// An outcome is the effect of a small number in a field of a GGUF file.
type outcome int

const (
	named  outcome = iota // an error that names the key or tensor and the offset
	fine                  // no error: the file is a smaller one
	shifts                // the following bytes are read as something else
)

// A ggufField is one number of a file, with the expected error.
type ggufField struct {
	what      string
	at, size  int
	owner     string // key or tensor
	place     int    // offset in the error
	zero, one outcome
}

// A fieldWriter writes a GGUF file and records the offsets of its numbers.
type fieldWriter struct {
	rawGGUF
	fields []ggufField
	owner  string
}

// number adds a field of size bytes. Errors about it name its own offset.
func (w *fieldWriter) number(size int, v uint64, what string, zero, one outcome) *ggufField {
	w.fields = append(w.fields, ggufField{what, len(w.b), size, w.owner, len(w.b), zero, one})
	w.b = append(w.b, binary.LittleEndian.AppendUint64(nil, v)[:size]...)
	return &w.fields[len(w.fields)-1]
}

// name adds a name. Errors cannot mention it if its length is wrong.
func (w *fieldWriter) name(s string) {
	w.number(8, uint64(len(s)), "length of name "+s, shifts, shifts)
	w.b = append(w.b, s...)
	w.owner = s
}

// pair adds a key and the type of its value.
func (w *fieldWriter) pair(key string, typ uint64) {
	w.owner = ""
	w.name(key)
	w.number(4, typ, "type of "+key, shifts, shifts)
}

// tensor adds the description of a tensor of 32 rows of 32 elements of 8 bits.
func (w *fieldWriter) tensor(name string, offset uint64) {
	w.owner = ""
	at := len(w.b)
	w.name(name)
	w.number(4, 2, "dimensions of "+name, shifts, shifts)
	w.number(8, 32, "inner dimension of "+name, named, fine)
	w.number(8, 32, "outer dimension of "+name, named, fine)
	for i := range 2 { // a valid length is an error of the tensor's data
		w.fields[len(w.fields)-1-i].place = -at
	}
	w.number(4, 24, "type of "+name, shifts, shifts)
	zero := named
	if offset == 0 {
		zero = fine
	}
	w.number(8, offset, "offset of "+name, zero, named).place = at
}

func ggufFields() *fieldWriter {
	w := &fieldWriter{rawGGUF: rawGGUF{b: []byte("GGUF\x03\x00\x00\x00")}}
	w.number(8, 2, "tensors", fine, fine)
	w.number(8, 6, "pairs", shifts, shifts)
	at := len(w.b)
	w.pair("general.alignment", 4)
	w.number(4, 32, "alignment", named, fine).place = at
	w.fields[len(w.fields)-1].one = shifts // the data begins after the descriptions
	w.pair("truth", 7)
	w.b = append(w.b, 1)
	w.pair("text", 8)
	w.number(8, 4, "length of a text", shifts, shifts)
	w.b = append(w.b, "abcd"...)
	w.pair("numbers", 9)
	w.number(4, 5, "type of numbers", shifts, shifts)
	w.number(8, 2, "numbers", shifts, shifts)
	w.u32(7).u32(8)
	w.pair("texts", 9)
	w.number(4, 8, "type of texts", shifts, shifts)
	w.number(8, 2, "texts", shifts, shifts)
	w.number(8, 3, "length of the first", shifts, shifts)
	w.b = append(w.b, "xyz"...)
	w.number(8, 1, "length of the second", shifts, fine)
	w.b = append(w.b, "x"...)
	w.pair("arrays", 9)
	w.number(4, 9, "type of arrays", shifts, shifts)
	w.number(8, 2, "arrays", shifts, shifts)
	w.number(4, 0, "type of the first array", fine, fine)
	w.number(8, 1, "elements of the first array", shifts, fine)
	w.b = append(w.b, 1)
	w.number(4, 5, "type of the second array", fine, fine)
	w.number(8, 0, "elements of the second array", fine, shifts)
	w.tensor("first", 0)
	w.tensor("last", 1024)
	return w
}

// Every number of a GGUF file is set to wrong values. A large one is an error about its key or
// tensor, at its offset.
func TestGGUFFieldsThatLie(t *testing.T) {
	w := ggufFields()
	original := w.data(2048)
	path := write(t, "model.gguf", original)
	if err := openHostile(t, path); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for _, field := range w.fields {
		for _, v := range []uint64{0, 1, 1 << 31, math.MaxInt64} {
			if field.size == 4 {
				v &= math.MaxUint32
			}
			data := bytes.Clone(original)
			copy(data[field.at:field.at+field.size], binary.LittleEndian.AppendUint64(nil, v))
			name := fmt.Sprintf("%s = %d", field.what, v)
			path := writeTo(t, dir, "model.gguf", data)
			err := openHostile(t, path)
			want := named
			switch v {
			case 0:
				want = field.zero
			case 1:
				want = field.one
			}
			if bytes.Equal(data, original) {
				want = fine
			}
			var formatError *modelfile.FormatError
			switch {
			case want == fine && err != nil:
				t.Errorf("%s: %v", name, err)
			case want != fine && err != nil && !errors.As(err, &formatError):
				t.Errorf("%s: error %#v is no FormatError", name, err)
			case want != named:
			case err == nil:
				t.Errorf("%s: no error", name)
			default:
				if got := formatError.Key + formatError.Tensor; got != field.owner {
					t.Errorf("%s: the error names %q, want %q: %v", name, got, field.owner, err)
				}
				place := field.place
				if place < 0 { // offset of the number if no tensor can have it, otherwise of the tensor
					place = -place
					if v == 0 {
						place = field.at
					}
				}
				if formatError.Offset != int64(place) {
					t.Errorf("%s: the error is at byte %d, want %d: %v", name, formatError.Offset, place, err)
				}
			}
		}
	}
}

// Every wrong number in a safetensors file is an error about its tensor.
func TestSafetensorsFieldsThatLie(t *testing.T) {
	const header = `{"first":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},"last":{"dtype":"F16","shape":[2,3],"data_offsets":[4,16]}}`
	numbers := regexp.MustCompile(`[\[,](\d+)`).FindAllStringSubmatchIndex(header, -1)
	if len(numbers) != 7 {
		t.Fatalf("%d numbers", len(numbers))
	}
	dir := t.TempDir()
	for _, m := range numbers {
		was := header[m[2]:m[3]]
		owner, at := "first", strings.Index(header, `"first"`)
		if last := strings.Index(header, `"last"`); m[2] > last {
			owner, at = "last", last
		}
		for _, v := range []string{"0", "1", "2147483648", "9223372036854775807", "9223372036854775808", "18446744073709551616", "-1", "1.0", "1e0", "true", `"1"`, "NaN"} {
			changed := header[:m[2]] + v + header[m[3]:]
			path := writeTo(t, dir, "model.safetensors", rawSafetensors(changed, 16))
			err := openHostile(t, path)
			if v == was {
				if err != nil {
					t.Errorf("%s: %v", changed, err)
				}
				continue
			}
			var formatError *modelfile.FormatError
			if !errors.As(err, &formatError) {
				t.Errorf("%s: error %v is no FormatError", changed, err)
				continue
			}
			// A wrong number affects its own tensor, or the start of the next one.
			owns := formatError.Tensor == owner || owner == "first" && formatError.Tensor == "last"
			place := formatError.Offset >= int64(8+at) && formatError.Offset < int64(8+len(changed))
			if !owns || !place || !errors.Is(err, modelfile.ErrFormat) {
				t.Errorf("%s: %v", changed, err)
			}
		}
	}
	// The length of the header.
	for _, n := range []uint64{0, 1, 1 << 31, math.MaxInt64, uint64(len(header)) - 1, uint64(len(header)) + 1} {
		data := rawSafetensors(header, 16)
		binary.LittleEndian.PutUint64(data, n)
		path := writeTo(t, dir, "model.safetensors", data)
		err := openHostile(t, path)
		wantError(t, err, modelfile.ErrFormat, path, "at byte")
		if n > uint64(len(data)) {
			wantError(t, err, modelfile.ErrFormat, "at byte 0", strconv.FormatUint(n, 10))
		}
	}
}
