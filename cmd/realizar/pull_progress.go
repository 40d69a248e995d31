package main

import (
	"encoding/json"
	"fmt"
	"path"
	"sync"
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"

	"github.com/realizar/realizar/internal/names"
	"github.com/realizar/realizar/internal/pull"
	"github.com/realizar/realizar/internal/store"
)

// A pullProgress shows the progress of a pull.
type pullProgress interface {
	pull.Watcher
	end(m *store.Model, err error)
}

// silentPull shows nothing.
type silentPull struct{}

func (silentPull) Plan([]store.File)       {}
func (silentPull) Came(int, int64)         {}
func (silentPull) Waits(int)               {}
func (silentPull) end(*store.Model, error) {}

// pullNotes writes lines at the beginning and the end, if there is no terminal.
type pullNotes struct {
	a     *app
	name  names.Name
	begun time.Time

	mu    sync.Mutex
	files int
	size  int64
}

// Plan reports the files to be downloaded.
func (p *pullNotes) Plan(files []store.File) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.files = len(files)
	for _, f := range files {
		p.size += f.Size
	}
	p.a.notef("pulling %s: %s in %s", p.name, byteText(p.size), fileCount(p.files))
}

func fileCount(n int) string {
	if n == 1 {
		return "one file"
	}
	return fmt.Sprintf("%d files", n)
}

// Came does nothing.
func (p *pullNotes) Came(int, int64) {}

// Waits reports that another process is downloading a file.
func (p *pullNotes) Waits(int) {
	p.a.notef("another process is downloading a file of %s: waiting for it", p.name)
}

func (p *pullNotes) end(_ *store.Model, err error) {
	if err == nil {
		p.a.notef("pulled %s in %v", p.name, time.Since(p.begun).Round(100*time.Millisecond))
	}
}

// pullBars shows a bar for each file that is downloaded, and one for all.
type pullBars struct {
	a    *app
	bars *mpb.Progress

	mu    sync.Mutex
	files []store.File
	each  []*mpb.Bar
	came  []int64
	all   *mpb.Bar
	sum   int64
}

func newPullBars(a *app) *pullBars {
	return &pullBars{a: a, bars: mpb.NewWithContext(a.ctx, mpb.WithOutput(a.stderr), mpb.WithWidth(30))}
}

// Plan makes the bar for all files. The others appear with their first bytes.
func (p *pullBars) Plan(files []store.File) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.files, p.each, p.came = files, make([]*mpb.Bar, len(files)), make([]int64, len(files))
	var size int64
	for _, f := range files {
		size += f.Size
	}
	p.all = p.bar("in all", size, 1<<20)
}

func (p *pullBars) bar(label string, size int64, priority int) *mpb.Bar {
	return p.bars.New(size, mpb.BarStyle(), mpb.BarPriority(priority), mpb.BarRemoveOnComplete(),
		mpb.PrependDecorators(decor.Name(printable(label)+" ", decor.WCSyncSpaceR)),
		mpb.AppendDecorators(decor.CountersKibiByte("% .1f of % .1f", decor.WCSyncSpace), decor.Name("  "), decor.AverageSpeed(decor.SizeB1024(0), "% .1f"), decor.Name("  "), decor.AverageETA(decor.ET_STYLE_GO)))
}

// Came updates the bars.
func (p *pullBars) Came(i int, n int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.each[i] == nil {
		p.each[i] = p.bar(path.Base(p.files[i].Name), p.files[i].Size, i)
	}
	p.came[i] += n
	p.sum += n
	p.each[i].SetCurrent(p.came[i])
	p.all.SetCurrent(p.sum)
}

// Waits writes a line above the bars.
func (p *pullBars) Waits(i int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, _ = fmt.Fprintf(p.bars, "realizar: another process is downloading %s: waiting for it\n", printable(p.files[i].Name))
}

func (p *pullBars) end(*store.Model, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, b := range append(p.each, p.all) {
		if b != nil {
			b.Abort(true)
		}
	}
	p.bars.Wait()
}

// pullLines writes JSON objects, one per line.
type pullLines struct {
	a    *app
	name names.Name

	mu     sync.Mutex
	files  []store.File
	came   []int64
	size   int64
	sum    int64
	spoken time.Time
}

func newPullLines(a *app, n names.Name) *pullLines { return &pullLines{a: a, name: n} }

// A pullEvent is a line of pull --json.
type pullEvent struct {
	Event string     `json:"event"` // plan, progress, wait, done
	Name  string     `json:"name"`
	Files []pullFile `json:"files,omitempty"`
	File  string     `json:"file,omitempty"`
	Bytes int64      `json:"bytes"`
	Of    int64      `json:"of"`
	Path  string     `json:"path,omitempty"`
}

// A pullFile is a file of the plan.
type pullFile struct {
	Name   string `json:"name"`
	Size   int64  `json:"size"`
	Digest string `json:"digest"`
}

// everyLine is the least time between two lines of progress.
const everyLine = time.Second

func (p *pullLines) write(e pullEvent) {
	e.Name, e.Bytes, e.Of = p.name.String(), p.sum, p.size
	line, err := json.Marshal(e)
	if err == nil {
		_, _ = fmt.Fprintf(p.a.out, "%s\n", line)
	}
	p.spoken = time.Now()
}

// Plan writes the list of files.
func (p *pullLines) Plan(files []store.File) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.files, p.came = files, make([]int64, len(files))
	var all []pullFile
	for _, f := range files {
		p.size += f.Size
		all = append(all, pullFile{f.Name, f.Size, string(f.Digest)})
	}
	p.write(pullEvent{Event: "plan", Files: all})
}

// Came writes the progress, at most once in everyLine.
func (p *pullLines) Came(i int, n int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sum += n
	if time.Since(p.spoken) >= everyLine {
		p.write(pullEvent{Event: "progress", File: p.files[i].Name})
	}
}

// Waits writes that another process is downloading a file.
func (p *pullLines) Waits(i int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.write(pullEvent{Event: "wait", File: p.files[i].Name})
}

func (p *pullLines) end(m *store.Model, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err == nil {
		p.write(pullEvent{Event: "done", Path: m.Path})
	}
}
