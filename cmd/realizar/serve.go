package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"time"

	"github.com/realizar/realizar/internal/backends"
	"github.com/realizar/realizar/internal/machine"
	"github.com/realizar/realizar/internal/pool"
	"github.com/realizar/realizar/internal/server"
	"github.com/realizar/realizar/internal/server/dialects"
	webpage "github.com/realizar/realizar/internal/server/page"
)

// serveCommand is `realizar serve`.
type serveCommand struct {
	Models []string `arg:"" name:"model" optional:"" help:"GGUF files, safetensors files, folders with one, names such as hf:org/repo, or demo, which is in the program. Of several, requests name the one that they are for, which is loaded when it is asked for. Default: demo."`

	Host            string        `default:"127.0.0.1" placeholder:"ADDRESS" help:"Where to listen. 0.0.0.0 is every address of the machine. Default: ${default}."`
	Port            int           `default:"8080" placeholder:"N" help:"The port to listen on; 0 takes a free one. Default: ${default}."`
	OllamaPort      *int          `placeholder:"N" help:"A second port with the same endpoints: clients of Ollama look for it at 11434. 0 takes a free one. Default: none."`
	ServedModelName []string      `placeholder:"NAME" sep:"none" help:"What requests call the model. May be given several times; answers bear the first. Of several models each is called by its own name. Default: the file's name, or the model's."`
	KeepAlive       time.Duration `name:"keep-alive" default:"0s" placeholder:"TIME" help:"How long a model stays when nobody uses it, 5m for example. Default: until another needs its memory."`
	APIKeyFile      string        `name:"api-key-file" placeholder:"FILE" help:"Ask for one of the keys in FILE, one a line. It is read again on SIGHUP."`
	TLSCert         string        `name:"tls-cert" placeholder:"FILE" help:"Serve https with this certificate, in PEM. It is read again on SIGHUP."`
	TLSKey          string        `name:"tls-key" placeholder:"FILE" help:"The certificate's key, in PEM."`
	CORS            []string      `name:"cors" placeholder:"ORIGIN" sep:"none" help:"Let scripts of this web page use the server, https://example.org for example; * means all pages. May be given several times."`

	AllowHost []string `name:"allow-host" placeholder:"NAME" sep:"none" help:"Answer requests that call the server by this name; * means any. May be given several times. Default: where the address is one of the machine's own alone, addresses and localhost; else any."`

	NoUI bool `name:"no-ui" help:"Show no page to browsers at /."`

	MaxQueue                 int      `default:"1024" placeholder:"N" help:"Answers that may wait for their turn; requests beyond are refused with 429. Default: ${default}."`
	MaxBody                  byteSize `default:"32MiB" placeholder:"SIZE" help:"The largest request. Default: ${default}."`
	RequestMemory            byteSize `default:"0" placeholder:"SIZE" help:"What all requests may hold of the host's memory together: bodies, texts, tokens, and answers that are not sent yet. Requests beyond are refused with 429. Default: a quarter of what the model leaves."`
	MaxConnections           int      `default:"0" placeholder:"N" help:"Connections at one time. A new one takes the place of one that waits for its client. Default: as many as the process may open files for, 16384 at most."`
	MaxConnectionsPerAddress int      `default:"0" placeholder:"N" help:"Connections of one address at one time. Default: three quarters of all."`

	RequestTimeout    time.Duration `default:"0s" placeholder:"TIME" help:"The longest that a request may take in all, 10m for example. Default: as long as it takes."`
	FirstTokenTimeout time.Duration `default:"0s" placeholder:"TIME" help:"The longest that a request may wait for its turn and its first token. Default: as long as it takes."`
	WriteTimeout      time.Duration `default:"30s" placeholder:"TIME" help:"The longest that a client may leave a piece of its answer unread. Default: ${default}."`
	DrainTimeout      time.Duration `default:"30s" placeholder:"TIME" help:"The longest that answers under way may take after SIGTERM. Default: ${default}."`

	Log     string `default:"text" enum:"text,json,none" placeholder:"text|json|none" help:"How to write a line for each request to standard error. Default: ${default}."`
	Lenient bool   `help:"Leave out fields of requests that are not known, and name them in the log and the header X-Left-Out, instead of refusing the request."`

	LogPrompts bool `help:"Write what requests say to the log, too."`

	OTLPEndpoint string `name:"otlp-endpoint" placeholder:"URL" help:"Send a span for each request to the OpenTelemetry collector at URL, http://localhost:4318 for example. It takes a program that is built with -tags otel."`

	pullFlag
	jsonFlags
	modelFlags
}

// Help is shown below the command's line.
func (*serveCommand) Help() string {
	return `serve answers requests in the dialects of OpenAI's, Anthropic's, Ollama's and llama.cpp's APIs until it is told to
stop. When the model is loaded it writes a line with each address to standard output.

Examples:

    realizar serve model.gguf
    realizar serve model.gguf --port 0 --served-model-name small
    realizar serve model.gguf --ollama-port 11434
    realizar serve ./Qwen3-0.6B --host 0.0.0.0 --api-key-file keys.txt --parallel 32
    curl localhost:8080/v1/chat/completions -H 'Content-Type: application/json' \
        -d '{"model": "small", "messages": [{"role": "user", "content": "Why is the sky blue?"}]}'

Of several models, each request names the one that it is for:

    realizar serve small.gguf large.gguf --memory 16GiB --keep-alive 10m

They are loaded when they are asked for. --memory, or --gpu-memory where they run on a GPU, is then what all of them
may take together. Where there is no room for another, the one goes that was idle the longest by the time it takes to
load; where all are in use, requests wait. Each has a cache for one answer of --context, or of the model's own, which
is halved down to 4096 tokens where the model would take more than half of the memory of all.

The address answers from the start: GET /health says that the process is there, everything else is refused with 503
and Retry-After while the model is being loaded, and GET /ready says whether a request would be let in.

SIGTERM or Ctrl-C ends the server: new requests are refused, those under way are finished within --drain-timeout, and
the exit code is 0. A second one ends it at once.`
}

// Validate is called by the parser.
func (c *serveCommand) Validate() error {
	switch {
	case c.Port < 0 || c.Port > 65535:
		return fmt.Errorf("--port=%d: want 1 to 65535, or 0 for a free one", c.Port)
	case c.OllamaPort != nil && (*c.OllamaPort < 0 || *c.OllamaPort > 65535):
		return fmt.Errorf("--ollama-port=%d: want 1 to 65535, or 0 for a free one", *c.OllamaPort)
	case (c.TLSCert == "") != (c.TLSKey == ""):
		return errors.New("--tls-cert and --tls-key go together")
	case c.KeepAlive < 0:
		return fmt.Errorf("--keep-alive=%v: want more than 0, or 0 for as long as its memory is not needed", c.KeepAlive)
	case len(c.Models) > 1 && len(c.ServedModelName) > 0:
		return errors.New("--served-model-name is for one model; of several each is called by its own name")
	case c.MaxQueue < 0:
		return fmt.Errorf("--max-queue=%d: want 0 or more", c.MaxQueue)
	case c.MaxBody < 1:
		return fmt.Errorf("--max-body=%d: want 1 or more", c.MaxBody)
	case c.MaxConnections < 0:
		return fmt.Errorf("--max-connections=%d: want 1 or more, or 0 for what the files allow", c.MaxConnections)
	case c.MaxConnectionsPerAddress < 0:
		return fmt.Errorf("--max-connections-per-address=%d: want 1 or more, or 0 for three quarters of all", c.MaxConnectionsPerAddress)
	case c.RequestTimeout < 0:
		return fmt.Errorf("--request-timeout=%v: want 0 or more", c.RequestTimeout)
	case c.FirstTokenTimeout < 0:
		return fmt.Errorf("--first-token-timeout=%v: want 0 or more", c.FirstTokenTimeout)
	case c.WriteTimeout <= 0:
		return fmt.Errorf("--write-timeout=%v: want more than 0", c.WriteTimeout)
	case c.DrainTimeout < 0:
		return fmt.Errorf("--drain-timeout=%v: want 0 or more", c.DrainTimeout)
	}
	for _, origin := range c.CORS {
		if err := http.NewCrossOriginProtection().AddTrustedOrigin(origin); origin != "*" && err != nil {
			return fmt.Errorf("--cors=%s: want *, or an origin such as https://example.org", origin)
		}
	}
	for _, name := range c.ServedModelName {
		if strings.TrimSpace(name) == "" {
			return errors.New("--served-model-name: the name is empty")
		}
	}
	return c.modelFlags.Validate()
}

// Run serves the model until a signal comes.
func (c *serveCommand) Run(a *app) error {
	specs, paths, err := c.named(a)
	if err != nil {
		return err
	}
	config, err := c.config(a)
	if err != nil {
		return err
	}
	if c.OTLPEndpoint != "" {
		spans, flush, err := server.NewSpans(a.ctx, c.OTLPEndpoint)
		if err != nil {
			return err
		}
		config.Spans = spans
		defer flushSpans(flush)
	}
	certificate, err := c.certificate()
	if err != nil {
		return err
	}
	h, err := c.listen(&config)
	if err != nil {
		return err
	}
	h.begin(certificate)
	defer h.http.Close() //nolint:errcheck // whoever is still there is cut off
	stopReloading := reloadOnHangup(config.Keys, certificate, config.Logger)
	defer stopReloading()

	free := machine.ReadMemory()
	models, err := c.pool(a, specs, paths, config.Logger)
	if err != nil {
		if a.ctx.Err() != nil {
			return nil // it was told to stop before it began
		}
		return err
	}
	defer func() {
		_ = h.http.Close() // whoever is still there is cut off, as models are closed when nobody uses them
		_ = models.Close()
	}()
	_, limits := models.Memory()
	memory := limits[backends.Processor.Name]
	config.Parallel = len(specs) * cmp.Or(c.Parallel, severalParallel)
	if h, ok := models.Look(specs[0].Name); ok { // it is alone
		config.Parallel, memory = h.Model.Parallel(), h.Model.HostMemory()
		h.Release()
	}
	plan := planServe(free, memory, config.RequestMemory, heapMemory())
	plan.apply()
	plan.log(config.Logger, config.Connections)
	config.RequestMemory = plan.requests
	s, err := server.New(models, config)
	if err != nil {
		return err
	}
	defer s.Stop()
	h.loading.Loaded(s.Handler())
	tidying, stopTidying := context.WithCancel(a.ctx)
	defer stopTidying()
	go plan.tidy(tidying, s.Held)
	if err := c.announce(a, h.addresses(), namesOf(specs)); err != nil {
		return err
	}
	select {
	case err := <-h.ended:
		s.Stop()
		return err
	case <-a.ctx.Done():
		return c.drain(h.http, s, config.Logger)
	}
}

// config is what the flags say of the server.
func (c *serveCommand) config(a *app) (server.Config, error) {
	connections, err := server.NewConnections(connectionLimits(c.MaxConnections, c.MaxConnectionsPerAddress, openFiles()))
	if err != nil {
		return server.Config{}, err
	}
	config := server.Config{
		Version: readBuild().version, Dialects: dialects.All, MaxQueue: c.MaxQueue, MaxBody: int64(c.MaxBody), RequestMemory: int64(c.RequestMemory),
		Deadlines:   server.Deadlines{FirstToken: c.FirstTokenTimeout, Write: c.WriteTimeout, Request: c.RequestTimeout},
		Connections: connections, Hosts: c.AllowHost, Origins: c.CORS, LogPrompts: c.LogPrompts, Lenient: c.Lenient,
		JSON: c.jsonOptions(),
	}
	if !c.NoUI {
		config.Page = webpage.New()
	}
	switch c.Log {
	case "json":
		config.Logger = slog.New(slog.NewJSONHandler(a.stderr, nil))
	case "none":
		config.Logger = slog.New(slog.DiscardHandler)
	default:
		config.Logger = slog.New(slog.NewTextHandler(a.stderr, nil))
	}
	if c.APIKeyFile == "" {
		return config, nil
	}
	config.Keys, err = server.ReadKeys(c.APIKeyFile)
	return config, err
}

// fileName is what a model is called by its file or folder.
func fileName(path string) string {
	if whole, err := filepath.Abs(path); err == nil {
		path = whole
	}
	name := filepath.Base(path)
	for _, end := range []string{".gguf", ".safetensors"} {
		name = strings.TrimSuffix(name, end)
	}
	return name
}

// namesOf are the names of models, for people.
func namesOf(specs []pool.Spec) string {
	names := make([]string, len(specs))
	for i, s := range specs {
		names[i] = s.Name
	}
	return strings.Join(names, ", ")
}

// announce says that requests are answered, and where.
func (c *serveCommand) announce(a *app, addresses []net.Addr, name string) error {
	scheme := "http"
	if c.TLSCert != "" {
		scheme = "https"
	}
	tcp, ok := addresses[0].(*net.TCPAddr)
	if ok && !tcp.IP.IsLoopback() && c.APIKeyFile == "" {
		a.notef("whoever can reach %s may use the model; --api-key-file asks for a key", addresses[0])
	}
	for _, address := range addresses {
		if _, err := fmt.Fprintf(a.out, "serving %s at %s://%s\n", name, scheme, address); err != nil {
			return err
		}
	}
	return nil
}

// lastWords is how long what was answered may take to be read when answers have ended.
const lastWords = 2 * time.Second

// flushSpans sends what has not been sent yet. A collector that is not there shall not
// keep the server.
func flushSpans(flush func(context.Context) error) {
	ctx, cancel := context.WithTimeout(context.Background(), lastWords)
	defer cancel()
	_ = flush(ctx)
}

// drain finishes what is under way within the time that it has.
func (c *serveCommand) drain(h *http.Server, s *server.Server, log *slog.Logger) error {
	log.Info("draining: new requests are refused")
	s.Drain()
	ctx, cancel := context.WithTimeout(context.Background(), c.DrainTimeout)
	defer cancel()
	if s.Wait(ctx) != nil {
		log.Warn("answers are cut off, which took longer than --drain-timeout", slog.Duration("timeout", c.DrainTimeout))
		s.Stop()
	}
	ctx, cancel = context.WithTimeout(context.Background(), lastWords)
	defer cancel()
	_ = h.Shutdown(ctx) // who does not read is cut off
	return nil
}
