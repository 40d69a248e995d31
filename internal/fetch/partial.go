package fetch

import (
	"bufio"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
)

// Suffixes of an incomplete file and of the record of its received bytes, next to the final place.
const (
	PartialSuffix = ".realizar-part"
	NotesSuffix   = ".realizar-notes"
)

// maxNotes is the maximum size of a record that is read, in bytes. No download writes more.
const maxNotes = 64 << 20

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// A partial is a file being written. Bytes count once they are recorded with their checksum. After
// an interruption of any kind, the recorded bytes whose checksum matches are kept.
type partial struct {
	place string // the final path
	file  *os.File
	notes *os.File

	mu   sync.Mutex
	have spans
	grew sync.Cond // the prefix has grown, or over is set
	over bool
}

// openPartial creates a partial file, or resumes an existing one.
func openPartial(place string, size int64) (p *partial, err error) {
	p = &partial{place: place}
	p.grew.L = &p.mu
	if p.file, err = os.OpenFile(place+PartialSuffix, os.O_RDWR|os.O_CREATE, 0o666); err != nil {
		return nil, err
	}
	if p.notes, err = os.OpenFile(place+NotesSuffix, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o666); err != nil {
		return nil, errors.Join(err, p.file.Close())
	}
	if err = p.readNotes(size); err == nil {
		err = p.file.Truncate(size)
	}
	if err != nil {
		return nil, errors.Join(err, p.close())
	}
	return p, nil
}

// readNotes adds the recorded spans whose checksum matches the file. It skips lines that a crash
// truncated and spans outside the file.
func (p *partial) readNotes(size int64) error {
	info, err := p.notes.Stat()
	if err != nil {
		return err
	}
	if info.Size() > maxNotes {
		return p.notes.Truncate(0)
	}
	lines := bufio.NewScanner(p.notes)
	buf := make([]byte, 256<<10)
	for lines.Scan() {
		s, sum, ok := parseNote(lines.Text())
		if !ok || s.from < 0 || s.to > size || s.size() <= 0 {
			continue
		}
		h := crc32.New(castagnoli)
		if n, err := io.CopyBuffer(h, io.NewSectionReader(p.file, s.from, s.size()), buf); err == nil && n == s.size() && h.Sum32() == sum {
			p.have = p.have.add(s)
		}
	}
	// Ends a truncated line, so that it does not swallow the next one. A line too long for the
	// scanner cannot be a record.
	_, err = p.notes.WriteString("\n")
	return err
}

func noteText(s span, sum uint32) string {
	text := fmt.Sprintf("%d %d %08x", s.from, s.to, sum)
	return fmt.Sprintf("%s %08x\n", text, crc32.Checksum([]byte(text), castagnoli))
}

func parseNote(line string) (s span, sum uint32, ok bool) {
	end := strings.LastIndexByte(line, ' ')
	if end < 0 {
		return s, 0, false
	}
	var own uint32
	if n, err := fmt.Sscanf(line, "%d %d %x %x", &s.from, &s.to, &sum, &own); n != 4 || err != nil {
		return s, 0, false
	}
	return s, sum, own == crc32.Checksum([]byte(line[:end]), castagnoli)
}

// note records that the bytes of s have been written and have the checksum sum.
func (p *partial) note(s span, sum uint32) error {
	if s.size() <= 0 {
		return nil
	}
	if _, err := p.notes.WriteString(noteText(s, sum)); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.have = p.have.add(s)
	p.grew.Broadcast()
	return nil
}

// gaps returns the missing spans.
func (p *partial) gaps(size int64) []span {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.have.gaps(size)
}

// waitPrefix waits until the file's first more than n bytes are present and returns the length of
// that prefix. It returns at most n once no more bytes will arrive.
func (p *partial) waitPrefix(n int64) int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.have.prefix() <= n && !p.over {
		p.grew.Wait()
	}
	return p.have.prefix()
}

// end sets whether no more bytes will arrive.
func (p *partial) end(over bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.over = over
	p.grew.Broadcast()
}

// forget discards all bytes.
func (p *partial) forget(size int64) error {
	p.mu.Lock()
	p.have = nil
	p.mu.Unlock()
	return errors.Join(p.notes.Truncate(0), p.file.Truncate(0), p.file.Truncate(size))
}

func (p *partial) close() error { return errors.Join(p.file.Close(), p.notes.Close()) }

// publish closes the file and moves it to its final place. The caller has verified it.
func (p *partial) publish(sync func(interface{ Sync() error }) error) error {
	if err := errors.Join(sync(p.file), p.close()); err != nil {
		return err
	}
	if err := os.Rename(p.place+PartialSuffix, p.place); err != nil {
		return err
	}
	if err := SyncFolder(filepath.Dir(p.place), sync); err != nil {
		return err
	}
	return remove(p.place + NotesSuffix)
}

// discard closes and removes the file and its record.
func (p *partial) discard() error {
	return errors.Join(p.close(), Discard(p.place))
}

// Discard removes an incomplete file and its record.
func Discard(place string) error {
	return errors.Join(remove(place+PartialSuffix), remove(place+NotesSuffix))
}

func remove(path string) error {
	if err := os.Remove(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// SyncFolder makes the entries of a folder durable, if the file system supports it.
func SyncFolder(path string, sync func(interface{ Sync() error }) error) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	_ = sync(d) // not every file system can sync a folder
	return d.Close()
}

// Missing returns how many bytes of a file are missing, according to its record.
func Missing(place string, size int64) int64 {
	if Whole(place, size) {
		return 0
	}
	notes, err := os.Open(place + NotesSuffix)
	if err != nil {
		return size
	}
	defer func() { _ = notes.Close() }()
	var have spans
	lines := bufio.NewScanner(io.LimitReader(notes, maxNotes))
	for lines.Scan() {
		if s, _, ok := parseNote(lines.Text()); ok && s.from >= 0 && s.to <= size {
			have = have.add(s)
		}
	}
	return size - have.size()
}

// Whole reports whether place is a regular file of the given size in bytes.
func Whole(place string, size int64) bool {
	info, err := os.Stat(place)
	return err == nil && info.Mode().IsRegular() && info.Size() == size
}
