package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"strings"
	"time"

	"github.com/realizar/realizar/internal/load"
)

// benchGroup is `realizar bench`. Without a subcommand it measures a model.
type benchGroup struct {
	Model benchCommand      `cmd:"" default:"withargs" help:"Measure the speed of a model on this machine; the word model may be left out."`
	Serve benchServeCommand `cmd:"" help:"Send requests to a server and measure how it answers."`
}

// benchServeCommand is `realizar bench serve`.
type benchServeCommand struct {
	URL      string `arg:"" optional:"" name:"url" default:"http://127.0.0.1:8080" help:"The server, such as localhost:8080. Default: ${default}."`
	Model    string `placeholder:"NAME" help:"The model to ask for. Default: the only one that the server has."`
	Endpoint string `default:"chat" enum:"chat,completions" placeholder:"chat|completions" help:"The kind of request."`
	APIKey   string `name:"api-key" env:"REALIZAR_API_KEY" placeholder:"KEY" help:"The key that the server wants."`

	Concurrency *int          `short:"c" placeholder:"N" help:"Keep N requests under way. Default: 16. With --rate: at most N, and no limit without the flag."`
	Rate        float64       `placeholder:"R" help:"Send R requests a second at random times (a Poisson process), however fast the server answers."`
	Requests    *int          `short:"n" placeholder:"N" help:"Send N requests. Default: 100, or without a limit where --duration is one."`
	Duration    time.Duration `placeholder:"D" help:"Send requests for so long, such as 30s or 5m, and wait for the answers under way."`
	Sweep       *load.Sweep   `placeholder:"SWEEP" help:"Measure again and again with more load, until the server gives no more: concurrency or rate, from 1 on and doubled; with :FROM:TO from there to there, or with : and the values."`
	Trace       string        `placeholder:"FILE" help:"Send requests when a trace says, and as long as it says. Its prompts are made up."`
	TraceSpeed  float64       `name:"trace-speed" default:"1" placeholder:"X" help:"Let the time of the trace pass X times as fast."`
	Timeout     time.Duration `default:"10m" placeholder:"D" help:"Give up a request that has not ended after so long; 0 means never."`

	PromptTokens load.Lengths `default:"128" placeholder:"LENGTHS" group:"requests" help:"Tokens of a prompt."`
	AnswerTokens load.Lengths `default:"64" placeholder:"LENGTHS" group:"requests" help:"Tokens of an answer, at most."`
	SharedPrefix int          `default:"0" placeholder:"N" group:"requests" help:"Begin each prompt with N tokens more that others begin with too."`
	Prefixes     int          `default:"1" placeholder:"K" group:"requests" help:"Choose among K such beginnings."`
	Seed         *uint64      `placeholder:"N" group:"requests" help:"The same seed sends the same requests. Default: a random one; the results name it."`
	IgnoreEOS    bool         `name:"ignore-eos" group:"requests" help:"Ask for answers that go on to their length, by the field ignore_eos, which not every server knows."`
	Fields       jsonObject   `placeholder:"JSON" group:"requests" help:"An object whose fields go into every request; null takes one out."`

	JSON *string `name:"json" placeholder:"FILE" help:"Write the results to FILE as one JSON object; - is standard output, in place of the table."`
	SVG  *string `name:"svg" placeholder:"FILE" help:"Draw the latencies and the throughput over time; of a sweep, the latencies over the throughput."`

	SLO *load.SLO `name:"slo" placeholder:"TIMES" help:"Count the answers that keep these times, such as ttft=500ms,itl=50ms."`
}

// Help is shown below the command's line.
func (*benchServeCommand) Help() string {
	return `The server is any that answers as OpenAI's do, with streams. LENGTHS are a number (128), uniform:64:256 for all
from 64 to 256 alike, or lognormal:200:0.8 for a median of 200 and a sigma of the logarithm of 0.8; with
lognormal:200:0.8:2000 there is none above 2000.

Prompts are random words. Where the server tells how it counts (/tokenize) they come to about the tokens asked for;
with --endpoint completions they are token ids then, and come to exactly so many. What they came to in
the end is what the server says in usage. A server keeps what it has read: the same --seed sends the same
prompts again, which it may then find in its cache.

With --concurrency a request follows when another has ended, so that a slow server is asked less. --rate is what
users do who do not wait for each other: latencies count from when a request was due, even where it was sent
late.

first token is the time to the first piece of text. inter-token is the time between pieces, most of which are one
token; per token is an answer's mean over all tokens after the first piece. end to end is until the end of the
stream. Requests that failed are counted by kind and have no part in the times. Rates are over all
the time until the last answer's end.

--sweep has a row for each load, and --svg draws first token and inter-token over the tokens a second. It stops where
more load brings no more: a twentieth for each doubling, failures above a tenth, or requests that come faster than
they are answered. A step sends 4 requests for each at one time, or those of 20 seconds; --requests and
--duration count for each step. Prompts differ from step to step.

--slo counts answers that keep every time named: ttft until the first token, itl between tokens (99% of an answer's
gaps), tpot per token, e2e end to end. Goodput is how many of them came a second.

--trace reads JSON lines (timestamp in milliseconds, input_length, output_length, hash_ids, as Mooncake's traces have
them) or CSV (TIMESTAMP, ContextTokens, GeneratedTokens, as Azure's have them; a time that is a number is
seconds). Prompts with equal hash_ids at their beginning share it, 512 tokens for each.

--json writes what the table has, milliseconds as such, and a series of what came in each interval. Ctrl-C ends the
measurement and shows what there is. The exit code is 1 where no request was answered.

Examples:

    realizar bench serve http://127.0.0.1:8080
    realizar bench serve http://127.0.0.1:8080 -c 64 -n 1000 --prompt-tokens uniform:100:1000
    realizar bench serve http://127.0.0.1:8080 --rate 5 --duration 2m --answer-tokens lognormal:200:0.8:2000 --svg load.svg
    realizar bench serve http://127.0.0.1:8080 --sweep concurrency --slo ttft=500ms,itl=50ms --svg sweep.svg
    realizar bench serve http://127.0.0.1:8080 --trace conversation.jsonl --trace-speed 10 --requests 500
    realizar bench serve http://127.0.0.1:8080 --shared-prefix 1000 --prefixes 4 --fields '{"temperature": 0}'`
}

// A jsonObject is the JSON object of a flag, with its numbers as written.
type jsonObject map[string]any

// UnmarshalText reads an object.
func (o *jsonObject) UnmarshalText(text []byte) error {
	in := json.NewDecoder(bytes.NewReader(text))
	in.UseNumber()
	if err := in.Decode((*map[string]any)(o)); err != nil {
		return fmt.Errorf("%.60q is no JSON object: %w", text, err)
	}
	if _, err := in.Token(); !errors.Is(err, io.EOF) || *o == nil {
		return fmt.Errorf("%.60q is not one JSON object", text)
	}
	return nil
}

// Validate implements the parser's interface.
func (c *benchServeCommand) Validate() error {
	switch {
	case c.Concurrency != nil && *c.Concurrency < 1:
		return fmt.Errorf("--concurrency=%d: want 1 or more", *c.Concurrency)
	case !(c.Rate >= 0):
		return fmt.Errorf("--rate=%v: want more than 0", c.Rate)
	case c.Requests != nil && *c.Requests < 1:
		return fmt.Errorf("--requests=%d: want 1 or more", *c.Requests)
	case c.Duration < 0:
		return fmt.Errorf("--duration=%s: want more than 0", c.Duration)
	case c.Sweep != nil && (c.Trace != "" || c.Rate != 0 || c.Concurrency != nil && c.Sweep.By == load.ByConcurrency):
		return errors.New("--sweep says how much load there is: leave out --trace, --rate, and with concurrency -c")
	case c.Trace != "" && (c.Rate != 0 || c.SharedPrefix != 0):
		return errors.New("--trace says when requests come and what they share: leave out --rate and --shared-prefix")
	case !(c.TraceSpeed > 0 && c.TraceSpeed <= 1e6):
		return fmt.Errorf("--trace-speed=%v: want more than 0, and at most 1000000", c.TraceSpeed)
	case c.Timeout < 0:
		return fmt.Errorf("--timeout=%s: want more than 0, or 0 for none", c.Timeout)
	case c.SharedPrefix < 0:
		return fmt.Errorf("--shared-prefix=%d: want 0 or more", c.SharedPrefix)
	case c.Prefixes < 1:
		return fmt.Errorf("--prefixes=%d: want 1 or more", c.Prefixes)
	case c.Prefixes > 1 && c.SharedPrefix == 0:
		return fmt.Errorf("--prefixes=%d has nothing to choose among: add --shared-prefix", c.Prefixes)
	}
	for _, f := range []struct {
		flag string
		path *string
	}{{"--json", c.JSON}, {"--svg", c.SVG}} {
		if f.path != nil && *f.path == "" {
			return fmt.Errorf("%s: the name of the file is empty", f.flag)
		}
	}
	return nil
}

// The defaults of the flags.
const (
	defaultConcurrency = 16
	defaultRequests    = 100
)

// options returns the options that the flags give. A sweep sets the load itself.
func (c *benchServeCommand) options() (load.Options, error) {
	o := load.Options{
		URL: c.URL, Model: c.Model, Key: c.APIKey, Endpoint: load.Endpoint(c.Endpoint),
		Prompt: c.PromptTokens, Answer: c.AnswerTokens, Shared: c.SharedPrefix, Prefixes: c.Prefixes, Seed: rand.Uint64() >> 11,
		Fields: c.Fields, Duration: c.Duration, Rate: c.Rate, Timeout: c.Timeout,
	}
	if c.Trace != "" {
		t, err := readTrace(c.Trace)
		if err != nil {
			return o, err
		}
		t.Speed, o.Trace = c.TraceSpeed, t
	}
	replace(&o.SLO, c.SLO)
	if c.Sweep == nil && c.Trace == "" {
		if c.Rate == 0 {
			o.Concurrency = defaultConcurrency
		}
		if c.Duration == 0 {
			o.Requests = defaultRequests
		}
	}
	replace(&o.Concurrency, c.Concurrency)
	replace(&o.Requests, c.Requests)
	replace(&o.Seed, c.Seed)
	if c.IgnoreEOS {
		o.Fields = map[string]any{"ignore_eos": true}
		for name, v := range c.Fields {
			o.Fields[name] = v
		}
	}
	return o, nil
}

// readTrace reads a trace from a file.
func readTrace(name string) (*load.Trace, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	return load.ReadTrace(name, f)
}

// A loadReport writes the result of a measurement or of a sweep.
type loadReport interface {
	table() string
	draw(io.Writer) error
	// worst returns an error if no request was answered.
	worst() error
}

// Run sends requests and writes what was measured.
func (c *benchServeCommand) Run(a *app) error {
	// An output file that cannot be created is an error before the measurement.
	files, err := c.newFiles()
	if err != nil {
		return err
	}
	o, err := c.options()
	if err != nil {
		return files.finish(err)
	}
	var result loadReport
	if c.Sweep != nil {
		result, err = c.sweep(a, o)
	} else {
		result, err = one(measure(a, o))
	}
	if result == nil {
		return files.finish(err)
	}
	stopped := err
	if err := files.write(result); err != nil {
		return err
	}
	if c.JSON == nil || *c.JSON != "-" {
		_, err = io.WriteString(a.out, result.table())
	} else {
		err = writeLoadJSON(a.out, result)
	}
	switch {
	case err != nil:
		return err
	case stopped != nil:
		return stopped
	}
	return result.worst()
}

// one returns the report of a result, or nil.
func one(r *load.Result, err error) (loadReport, error) {
	if r == nil {
		return nil, err
	}
	return loadOf{r}, err
}

// measure returns no result if no request was sent.
func measure(a *app, o load.Options) (*load.Result, error) {
	g, err := load.New(a.ctx, o)
	if err != nil {
		if cause := context.Cause(a.ctx); cause != nil {
			return nil, cause
		}
		if errors.Is(err, load.ErrOptions) {
			err = usageError{err}
		}
		return nil, err
	}
	requests := o.Requests
	if o.Trace != nil && (requests == 0 || requests > len(o.Trace.Arrivals)) {
		requests = len(o.Trace.Arrivals)
	}
	live := a.showLoad(g, requests)
	result, err := g.Run(a.ctx)
	live.end()
	return result, err
}

// firstFailure returns the message of a failed request.
func firstFailure(r *load.Result) string {
	kind := failureKinds(r)[0]
	return kind + ": " + strings.TrimSpace(r.Errors[kind].First)
}
