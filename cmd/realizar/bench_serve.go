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
	Model benchCommand      `cmd:"" default:"withargs" help:"Measure the prefill and decode speed of a model on this machine."`
	Serve benchServeCommand `cmd:"" help:"Send requests to a server and measure latencies and throughput."`
}

// benchServeCommand is `realizar bench serve`.
type benchServeCommand struct {
	URL      string `arg:"" optional:"" name:"url" default:"http://127.0.0.1:8080" help:"The server, such as localhost:8080. Default: ${default}."`
	Model    string `placeholder:"NAME" help:"The model to request. Default: the only model of the server."`
	Endpoint string `default:"chat" enum:"chat,completions" placeholder:"chat|completions" help:"The endpoint to send requests to. Default: ${default}."`
	APIKey   string `name:"api-key" env:"REALIZAR_API_KEY" placeholder:"KEY" help:"The API key of the server. Default: REALIZAR_API_KEY."`

	Concurrency *int          `short:"c" placeholder:"N" common:"" help:"Keep N requests running. Default: 16. With --rate, N is a maximum, by default none."`
	Rate        float64       `placeholder:"R" common:"" help:"Send R requests per second at random times (a Poisson process), however fast the server answers."`
	Requests    *int          `short:"n" placeholder:"N" common:"" help:"Send N requests. Default: 100, or no limit with --duration."`
	Duration    time.Duration `placeholder:"D" common:"" help:"Send requests for this time, such as 30s or 5m, and wait for the running ones."`
	Sweep       *load.Sweep   `placeholder:"SWEEP" common:"" help:"Repeat the measurement with more load until the throughput stops growing: concurrency or rate, doubled from 1; rate:2:32 doubles from 2 to 32, rate:1,3,5 takes these values."`
	Trace       string        `placeholder:"FILE" help:"Send requests at the times and with the lengths of a trace. The prompts are made up."`
	TraceSpeed  float64       `name:"trace-speed" default:"1" placeholder:"X" help:"Replay the trace X times as fast. Default: ${default}."`
	Timeout     time.Duration `default:"10m" placeholder:"D" help:"Abandon a request after this time; 0 means never. Default: ${default}."`

	PromptTokens load.Lengths `default:"128" placeholder:"LENGTHS" group:"requests" common:"" help:"Tokens in a prompt, such as 128 or uniform:64:256. Default: ${default}."`
	AnswerTokens load.Lengths `default:"64" placeholder:"LENGTHS" group:"requests" common:"" help:"Most tokens in an answer, in the same notation. Default: ${default}."`
	SharedPrefix int          `default:"0" placeholder:"N" group:"requests" help:"Begin each prompt with N additional tokens that it shares with other prompts."`
	Prefixes     int          `default:"1" placeholder:"K" group:"requests" help:"Number of different shared prefixes. Default: ${default}."`
	Seed         *uint64      `placeholder:"N" group:"requests" help:"Seed of the requests; the same seed sends the same requests. Default: a random seed, which the results name."`
	IgnoreEOS    bool         `name:"ignore-eos" group:"requests" help:"Request answers of full length with the field ignore_eos, which not every server knows."`
	Fields       jsonObject   `placeholder:"JSON" group:"requests" help:"An object whose fields are added to every request; null removes a field."`

	JSON *string `name:"json" placeholder:"FILE" common:"" help:"Write the results to FILE as one JSON object; - is standard output, without the table."`
	SVG  *string `name:"svg" placeholder:"FILE" common:"" help:"Plot latencies and throughput over time; with --sweep, latencies over throughput."`

	SLO *load.SLO `name:"slo" placeholder:"TIMES" common:"" help:"Count the answers that meet these latencies, such as ttft=500ms,itl=50ms."`
}

// Help is shown below the command's line.
func (*benchServeCommand) Help() string {
	return `The server is any with the endpoints of the OpenAI API and streaming. LENGTHS are a number (128),
uniform:64:256 for a uniform distribution from 64 to 256, or lognormal:200:0.8 for a log-normal
distribution with a median of 200 and a sigma of 0.8; lognormal:200:0.8:2000 cuts it off at 2000.

Prompts are random words. If the server counts tokens (/tokenize), they have about the requested
number of tokens; with --endpoint completions they are then token ids, and have exactly this number.
The results have the counts that the server reports in usage. Servers cache prompts: the same --seed
sends the same prompts again, and the server may find them in its cache.

With --concurrency a request follows the end of another, so a slow server gets fewer requests. --rate
models users who do not wait for each other: latencies count from the time when a request is due,
even if it is sent later.

first token is the time to the first piece of text. inter-token is the time between pieces, most of
which are one token; per token is the mean of an answer over all tokens after the first piece. end to
end is the time to the end of the stream. Failed requests are counted by kind and do not enter the
times. Rates are over the time until the end of the last answer.

--sweep writes a row for each load. SWEEP is concurrency or rate, doubled from 1; with :FROM:TO,
doubled in this range; or with : and values separated by commas. The sweep stops at saturation: a
doubled load raises the throughput by less than a twentieth, more than a tenth of the requests fail,
or requests arrive faster than they are answered. A step sends 4 requests for each running one, or
those of 20 seconds; --requests and --duration apply to each step. Each step has prompts of its own.

--slo counts the answers that meet every given latency: ttft to the first token, itl between tokens
(99% of the gaps of an answer), tpot per token, e2e end to end. Goodput is their number per second.

--trace reads JSON lines with timestamp (milliseconds), input_length, output_length and hash_ids, the
format of Mooncake, or CSV with TIMESTAMP, ContextTokens and GeneratedTokens, the format of Azure,
where a timestamp that is a number is in seconds. Prompts whose hash_ids begin alike share a prefix
of 512 tokens for each.

--json writes the content of the table, in milliseconds, and a time series. Ctrl-C ends the
measurement and shows the results so far. The exit code is 1 if no request was answered.

Examples:

    realizar bench serve http://127.0.0.1:8080
    realizar bench serve --sweep concurrency --svg sweep.svg
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
		return fmt.Errorf("%.60q is not a JSON object: %w", text, err)
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
		return errors.New("--sweep sets the load; remove --trace, --rate, and with concurrency -c")
	case c.Trace != "" && (c.Rate != 0 || c.SharedPrefix != 0):
		return errors.New("--trace sets arrival times and shared prefixes; remove --rate and --shared-prefix")
	case !(c.TraceSpeed > 0 && c.TraceSpeed <= 1e6):
		return fmt.Errorf("--trace-speed=%v: want more than 0, and at most 1000000", c.TraceSpeed)
	case c.Timeout < 0:
		return fmt.Errorf("--timeout=%s: want more than 0, or 0 for none", c.Timeout)
	case c.SharedPrefix < 0:
		return fmt.Errorf("--shared-prefix=%d: want 0 or more", c.SharedPrefix)
	case c.Prefixes < 1:
		return fmt.Errorf("--prefixes=%d: want 1 or more", c.Prefixes)
	case c.Prefixes > 1 && c.SharedPrefix == 0:
		return fmt.Errorf("--prefixes=%d has no shared prefixes to choose from; add --shared-prefix", c.Prefixes)
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
	table(width int) string // in lines of at most width columns if possible; 0 is any number
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
		_, err = io.WriteString(a.out, result.table(terminalWidth(a.stdout)))
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
		return nil, unreachable(err, "bench serve", o.URL)
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
	first := strings.TrimSpace(r.Errors[kind].First)
	if strings.HasPrefix(first, kind) {
		return first
	}
	return kind + ": " + first
}
