package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	tea "charm.land/bubbletea/v2"
	"golang.org/x/term"

	"github.com/realizar/realizar/internal/load"
	"github.com/realizar/realizar/internal/watch"
)

// topCommand is `realizar top`.
type topCommand struct {
	URL      string        `arg:"" optional:"" name:"url" default:"http://127.0.0.1:8080" help:"The server, such as localhost:8080. Default: ${default}."`
	APIKey   string        `name:"api-key" env:"REALIZAR_API_KEY" placeholder:"KEY" help:"The key that the server wants. realizar serve wants none for its metrics."`
	Interval time.Duration `default:"1s" placeholder:"D" help:"Look so often. Default: ${default}."`
	Once     bool          `help:"Look twice, write what went on in between, and end. So it is where standard output is no terminal."`
	JSON     bool          `name:"json" help:"Write one JSON object per line and interval."`
}

// Help is shown below the command's line.
func (*topCommand) Help() string {
	return `top shows what a running server does: requests, tokens, steps, the cache, the device's memory and latencies. It
reads the server's metrics, at /metrics, and asks nothing else of it. q or Ctrl-C leaves.

Rates are those of the last interval. busy is the share of it during which a step was under way. Latencies are
percentiles, of the last interval and since the server began; between the bounds of a histogram's buckets they are
interpolated, and > is before the last bound where they lie above it. What the server does not say, or has no
value for, is -. The curve is of the answers' tokens a second.

Of a server of several models there are how many are in each state, the memory that is reserved for them of what they
may have, and a row for each with its state, the requests that use it and those that wait for it to be loaded. The
rest is of all models together; each cache is named by its model.

When the server goes away, top says so, keeps what it saw last, and goes on when it is back.

With --json the members are at, url, models, up_s, seconds (of the interval), restarted (the server began anew),
running, waiting, ended_s (answers a second by stop, length, abort, error and other), errors_s (requests a second
that were refused or failed), prompt_tok_s, computed_tok_s (of these, those that the cache did not hold),
answer_tok_s, steps_s, busy (0 to 1), cache_use (0 to 1), cache (pages by pool), prefix_hits and prefix_hits_all (0
to 1, of the interval and since the start), preemptions_s, evictions_s, saves_s, restores_s, memory (bytes by
device), and latency: first_token, between_tokens, end_to_end and queue, each with interval and all, which have n,
p50_ms, p90_ms, p99_ms and above, the percentiles that lie above the bound that stands for them. A number that is
not known is null. With several models there are also states (how many models are in each), statuses (a list of model,
state, requests, waiting and memory_bytes), reserved (a list of device, used_bytes and limit_bytes), and the model of
each pool in cache. While the server is away there are at, url, error and away_s alone.

Examples:

    realizar top http://127.0.0.1:8080
    realizar top http://127.0.0.1:8080 --interval 5s
    realizar top http://127.0.0.1:8080 --once
    realizar top http://127.0.0.1:8080 --json >> load.jsonl`
}

// The shortest and the longest time between two looks.
const (
	minInterval = 100 * time.Millisecond
	maxInterval = time.Hour
)

// Validate is called by the parser.
func (c *topCommand) Validate() error {
	if c.Interval < minInterval || c.Interval > maxInterval {
		return fmt.Errorf("--interval=%s: want %s to %s", c.Interval, minInterval, maxInterval)
	}
	return nil
}

// Run watches the server.
func (c *topCommand) Run(a *app) error {
	w, err := watch.New(c.URL, c.APIKey)
	if err != nil {
		if errors.Is(err, load.ErrOptions) {
			err = usageError{err}
		}
		return err
	}
	s := &serverState{url: c.URL, interval: c.Interval}
	switch {
	case c.JSON:
		return c.follow(a, w, s, func() error { return writeTop(a.out, s) })
	case c.Once, !term.IsTerminal(int(a.stdout.Fd())), !term.IsTerminal(int(os.Stdin.Fd())):
		c.Once = true
		return c.follow(a, w, s, func() error {
			_, err := io.WriteString(a.out, s.frame(topWidth(a), 0, "", plain)+"\n")
			return err
		})
	}
	v := &topView{ctx: a.ctx, state: s, read: w.Read}
	v.resize(80, 24)
	_, err = tea.NewProgram(v, tea.WithContext(a.ctx), tea.WithoutSignalHandler(), tea.WithOutput(a.stdout)).Run()
	if a.ctx.Err() != nil {
		return context.Canceled
	}
	return err
}

// plainWidth is that of what is not written to a terminal.
const plainWidth = 100

func topWidth(a *app) int {
	if width, _, err := term.GetSize(int(a.stdout.Fd())); err == nil && width > 0 {
		return width
	}
	return plainWidth
}

// follow calls show after each interval, or after one where that is enough: a server
// that is away is an error then.
func (c *topCommand) follow(a *app, w *watch.Watcher, s *serverState, show func() error) error {
	tick := time.NewTicker(c.Interval)
	defer tick.Stop()
	for {
		r := look(a.ctx, w.Read)
		if err := context.Cause(a.ctx); err != nil {
			return err
		}
		s.take(r)
		if c.Once && s.away != nil {
			return fmt.Errorf("%s: %s", c.URL, awayText(s.away))
		}
		if s.between != nil || s.away != nil {
			if err := show(); err != nil || c.Once {
				return err
			}
		}
		select {
		case <-tick.C:
		case <-a.ctx.Done():
			return context.Cause(a.ctx)
		}
	}
}

// lookTimeout is how long a server may take to say how it stands.
const lookTimeout = 5 * time.Second

// A topReading is what came of a look at the server.
type topReading struct {
	sample *watch.Sample
	err    error
	at     time.Time // its end
}

func look(ctx context.Context, read func(context.Context) (*watch.Sample, error)) topReading {
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	s, err := read(ctx)
	return topReading{s, err, time.Now()}
}

// A topView is the live view of a server.
type topView struct {
	ctx           context.Context
	state         *serverState
	read          func(context.Context) (*watch.Sample, error)
	width, height int
	begun         time.Time // the last look
}

// lookMsg says that it is time to look.
type lookMsg struct{}

// Init implements [tea.Model].
func (v *topView) Init() tea.Cmd { return v.look() }

func (v *topView) look() tea.Cmd {
	v.begun = time.Now()
	return func() tea.Msg { return look(v.ctx, v.read) }
}

func (v *topView) resize(width, height int) { v.width, v.height = width, height }

// Update implements [tea.Model].
func (v *topView) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		v.resize(msg.Width, msg.Height)
	case tea.KeyPressMsg:
		switch msg.String() {
		case "q", "Q", "ctrl+c", "ctrl+d", "esc":
			return v, tea.Quit
		case "ctrl+z":
			return v, tea.Suspend
		}
	case topReading:
		v.state.take(msg)
		return v, tea.Tick(max(0, v.state.interval-time.Since(v.begun)), func(time.Time) tea.Msg { return lookMsg{} })
	case lookMsg:
		return v, v.look()
	}
	return v, nil
}

// View implements [tea.Model].
func (v *topView) View() tea.View {
	f := tea.NewView(v.state.frame(v.width, max(1, v.height), "q leaves", colours))
	f.AltScreen = true
	return f
}

// writeTop writes how a server stands as one line of JSON.
func writeTop(w io.Writer, s *serverState) error {
	out := json.NewEncoder(w)
	out.SetEscapeHTML(false)
	if s.away != nil {
		return out.Encode(topAway{s.at, s.url, awayText(s.away), s.at.Sub(s.since).Seconds()})
	}
	return out.Encode(newTopResult(s))
}
