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

// What a file is called beside its place while it is not whole, and the notes of what
// of it has come.
const (
	PartialSuffix = ".realizar-part"
	NotesSuffix   = ".realizar-notes"
)

// maxNotes are the most bytes of notes that are read; more are those of no download.
const maxNotes = 64 << 20

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// A partial is a file in the making. Bytes count when they are noted with their
// checksum: after an interruption of any kind, those whose checksum holds are there.
type partial struct {
	place string // the file's own
	file  *os.File
	notes *os.File

	mu   sync.Mutex
	have spans
	grew sync.Cond // the prefix has grown, or ended is set
	over bool
}

// openPartial begins a file, or goes on with what there is of it.
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

// readNotes takes in what is noted and still there. Lines that a crash cut or that
// speak of other bytes do not count.
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
	// A line that was cut shall not swallow the next one. A line that is too long for the
	// scanner is none of these.
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

// note says that bytes with that checksum have been written.
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

// gaps are the bytes that are missing.
func (p *partial) gaps(size int64) []span {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.have.gaps(size)
}

// waitPrefix waits until more than n bytes are there from the beginning on, and returns
// how many; no more than n when nothing more will come.
func (p *partial) waitPrefix(n int64) int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.have.prefix() <= n && !p.over {
		p.grew.Wait()
	}
	return p.have.prefix()
}

// end says that nothing more will come, or that more may come again.
func (p *partial) end(over bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.over = over
	p.grew.Broadcast()
}

// forget throws away all bytes.
func (p *partial) forget(size int64) error {
	p.mu.Lock()
	p.have = nil
	p.mu.Unlock()
	return errors.Join(p.notes.Truncate(0), p.file.Truncate(0), p.file.Truncate(size))
}

func (p *partial) close() error { return errors.Join(p.file.Close(), p.notes.Close()) }

// publish closes the file and gives it its place. The caller has checked all of it.
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

// discard closes the file and leaves nothing of it.
func (p *partial) discard() error {
	return errors.Join(p.close(), Discard(p.place))
}

// Discard removes what there is of a file that is not whole.
func Discard(place string) error {
	return errors.Join(remove(place+PartialSuffix), remove(place+NotesSuffix))
}

func remove(path string) error {
	if err := os.Remove(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// SyncFolder makes the names in a folder durable, where the system can.
func SyncFolder(path string, sync func(interface{ Sync() error }) error) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	_ = sync(d) // some file systems cannot, and then the names are as durable as they get
	return d.Close()
}

// Missing is how many bytes of a file have to come yet, by the notes alone.
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

// Whole reports whether there is a file of that size in its place.
func Whole(place string, size int64) bool {
	info, err := os.Stat(place)
	return err == nil && info.Mode().IsRegular() && info.Size() == size
}
