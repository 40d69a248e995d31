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
	APIKey   string        `name:"api-key" env:"REALIZAR_API_KEY" placeholder:"KEY" common:"" help:"The API key of the server. Default: REALIZAR_API_KEY. The metrics of realizar serve need none."`
	Interval time.Duration `default:"1s" placeholder:"D" common:"" help:"Time between updates. Default: ${default}."`
	Once     bool          `common:"" help:"Write the metrics of one interval and exit. Default when standard output is not a terminal."`
	JSON     bool          `name:"json" common:"" help:"Write one JSON object for each interval, one per line."`
}

// Help is shown below the command's line.
func (*topCommand) Help() string {
	return `top shows requests, tokens, steps, KV cache, device memory and latencies of a running server. It reads
the metrics of the server, at /metrics, and nothing else. q or Ctrl-C leaves.

Rates are those of the last interval. busy is the share of the interval during which a step runs.
Latencies are percentiles, of the last interval and since the start of the server, interpolated
between the bounds of histogram buckets; > precedes the last bound if the percentile is above it. -
means that the server does not report a value. The curve is the rate of answer tokens.

With several models, top shows the number of models in each state, the memory reserved for them and
its limit, and a row for each model with its state, the requests that use it and those that wait for
it to load. Everything else is the total over the models; each cache has the name of its model.

When the server is unreachable, top says so, keeps the last values, and continues when it is back.

With --json the members are at, url, models, up_s, seconds (of the interval), restarted (whether the
server started again), running, waiting, ended_s (answers per second by stop, length, abort, error
and other), errors_s (requests per second that were refused or failed), prompt_tok_s, computed_tok_s
(prompt tokens without those found in the cache), answer_tok_s, steps_s, busy (0 to 1),
proposed_tok_s and accepted_tok_s (tokens proposed by speculative decoding), cache_use (0 to 1), cache (pages by pool), prefix_hits and prefix_hits_all (0 to 1, of the interval and since the
start), preemptions_s, evictions_s, saves_s, restores_s, memory (bytes by device), and latency:
first_token, between_tokens, end_to_end and queue, each with interval and all, which have n, p50_ms,
p90_ms, p99_ms and above, the percentiles above the last bound, which stands for them. Unknown
numbers are null. With several models there are also states (the number of models in each), statuses
(a list of model, state, requests, waiting and memory_bytes), reserved (a list of device, used_bytes
and limit_bytes), and the model of each pool in cache. While the server is unreachable the members
are at, url, error and away_s.

Examples:

    realizar top
    realizar top http://127.0.0.1:8080 --interval 5s
    realizar top http://127.0.0.1:8080 --once
    realizar top http://127.0.0.1:8080 --json >> load.jsonl`
}

// The bounds of the interval.
const (
	minInterval = 100 * time.Millisecond
	maxInterval = time.Hour
)

// Validate implements the parser's interface.
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

// plainWidth is the width in columns of output that is not written to a terminal.
const plainWidth = 100

func topWidth(a *app) int {
	if width, _, err := term.GetSize(int(a.stdout.Fd())); err == nil && width > 0 {
		return width
	}
	return plainWidth
}

// follow calls show after each interval. With --once it does so once, and an unreachable server is
// an error.
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
			if isUnreachable(s.away) {
				return unreachable(s.away, "top", c.URL)
			}
			return fmt.Errorf("%s: GET /metrics: %s", c.URL, awayText(s.away))
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

// lookTimeout is how long a server may take to send its metrics.
const lookTimeout = 5 * time.Second

// A topReading is the result of reading the server's metrics.
type topReading struct {
	sample *watch.Sample
	err    error
	at     time.Time // the end of the reading
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
	begun         time.Time // the beginning of the last reading
}

// lookMsg says that it is time to read the metrics.
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

// writeTop writes the server's state as one line of JSON.
func writeTop(w io.Writer, s *serverState) error {
	out := json.NewEncoder(w)
	out.SetEscapeHTML(false)
	if s.away != nil {
		return out.Encode(topAway{s.at, s.url, awayText(s.away), s.at.Sub(s.since).Seconds()})
	}
	return out.Encode(newTopResult(s))
}
