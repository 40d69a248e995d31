package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"time"

	"github.com/alecthomas/kong"
	"golang.org/x/term"

	"github.com/realizar/realizar/internal/backends"
	"github.com/realizar/realizar/internal/machine"
	"github.com/realizar/realizar/internal/names"
	"github.com/realizar/realizar/internal/server"
	"github.com/realizar/realizar/internal/server/dialects"
	webpage "github.com/realizar/realizar/internal/server/page"
)

// serveCommand is `realizar serve`.
type serveCommand struct {
	Models []string `arg:"" name:"model" optional:"" help:"GGUF files, safetensors files, folders with one, names such as hf:org/repo, or demo, which is in the program. Of several, requests name the one that they are for, which is loaded when it is asked for. Default: demo."`

	ModelsFrom      string        `name:"models" placeholder:"FILE|FOLDER|store" live:"file" help:"More models: those that a YAML file describes, those in a folder, or with store those that realizar list has. The file and the folder are read again when they change."`
	Host            string        `default:"127.0.0.1" placeholder:"ADDRESS" help:"Where to listen. 0.0.0.0 is every address of the machine. Default: ${default}."`
	Port            int           `default:"8080" placeholder:"N" help:"The port to listen on; 0 takes a free one. Default: ${default}."`
	OllamaPort      *int          `placeholder:"N" help:"A second port with the same endpoints: clients of Ollama look for it at 11434. 0 takes a free one. Default: none."`
	ServedModelName []string      `placeholder:"NAME" sep:"none" help:"What requests call the model. May be given several times; answers bear the first. Of several models each is called by its own name. Default: the file's name, or the model's."`
	KeepAlive       time.Duration `name:"keep-alive" default:"0s" placeholder:"TIME" live:"yes" help:"How long a model stays when nobody uses it, 5m for example. Default: until another needs its memory."`
	APIKeyFile      string        `name:"api-key-file" placeholder:"FILE" live:"file" help:"Ask for one of the keys in FILE, one a line. It is read again on SIGHUP."`
	TLSCert         string        `name:"tls-cert" placeholder:"FILE" live:"file" help:"Serve https with this certificate, in PEM. It is read again on SIGHUP."`
	TLSKey          string        `name:"tls-key" placeholder:"FILE" live:"file" help:"The certificate's key, in PEM."`
	CORS            []string      `name:"cors" placeholder:"ORIGIN" sep:"none" live:"yes" help:"Let scripts of this web page use the server, https://example.org for example; * means all pages. May be given several times. Default: pages of localhost, at any port."`

	AllowHost []string `name:"allow-host" placeholder:"NAME" sep:"none" live:"yes" help:"Answer requests that call the server by this name; * means any. May be given several times. Default: where the address is one of the machine's own alone, addresses and localhost; else any."`

	NoUI bool `name:"no-ui" help:"Show no page to browsers at /."`

	ManageModels  bool     `name:"manage-models" help:"Let clients fetch, copy, create, push and delete models of this machine, by Ollama's /api/pull and others. Default: they may not."`
	AllowRegistry []string `name:"allow-registry" placeholder:"HOST" sep:"none" help:"Let clients name this registry or web server with --manage-models, localhost:5000 for example. May be given several times. Default: Hugging Face's hub and Ollama's registry alone."`

	MaxQueue                 int      `default:"1024" placeholder:"N" live:"yes" help:"Answers that may wait for their turn; requests beyond are refused with 429. Default: ${default}."`
	MaxBody                  byteSize `default:"32MiB" placeholder:"SIZE" live:"yes" help:"The largest request. Default: ${default}."`
	RequestMemory            byteSize `default:"0" placeholder:"SIZE" help:"What all requests may hold of the host's memory together: bodies, texts, tokens, and answers that are not sent yet. Requests beyond are refused with 429. Default: a quarter of what the model leaves."`
	MaxConnections           int      `default:"0" placeholder:"N" live:"yes" help:"Connections at one time. A new one takes the place of one that waits for its client. Default: as many as the process may open files for, 16384 at most."`
	MaxConnectionsPerAddress int      `default:"0" placeholder:"N" live:"yes" help:"Connections of one address at one time. Default: three quarters of all."`

	RequestTimeout    time.Duration `default:"0s" placeholder:"TIME" live:"yes" help:"The longest that a request may take in all, 10m for example. Default: as long as it takes."`
	FirstTokenTimeout time.Duration `default:"0s" placeholder:"TIME" live:"yes" help:"The longest that a request may wait for its turn and its first token. Default: as long as it takes."`
	WriteTimeout      time.Duration `default:"30s" placeholder:"TIME" live:"yes" help:"The longest that a client may leave a piece of its answer unread. Default: ${default}."`
	SSEKeepAlive      time.Duration `name:"sse-keep-alive" default:"15s" placeholder:"TIME" live:"yes" help:"Send a comment on a stream of events that has been silent for so long, as its request waits for its turn; 0 sends none. Default: ${default}."`
	DrainTimeout      time.Duration `default:"30s" placeholder:"TIME" live:"yes" help:"The longest that answers under way may take after SIGTERM. Default: ${default}."`

	Log     string `default:"text" enum:"text,json,none" placeholder:"text|json|none" help:"How to write a line for each request to standard error. Default: ${default}."`
	Lenient bool   `live:"yes" help:"Leave out fields of requests that are not known, and name them in the log and the header X-Left-Out, instead of refusing the request."`

	LogPrompts bool `live:"yes" help:"Write what requests say to the log, too."`

	OTLPEndpoint string `name:"otlp-endpoint" placeholder:"URL" help:"Send a span for each request to the OpenTelemetry collector at URL, http://localhost:4318 for example. It takes a program that is built with -tags otel."`

	pullFlag
	jsonFlags
	modelFlags
	speculativeFlags
	stepFlags
	settingsFlags
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
    realizar serve --config serve.yaml
    curl localhost:8080/v1/chat/completions -H 'Content-Type: application/json' \
        -d '{"model": "small", "messages": [{"role": "user", "content": "Why is the sky blue?"}]}'

Several models: each request names its own, and loads it if need be.

    realizar serve small.gguf large.gguf --memory 16GiB --keep-alive 10m
    realizar serve --models /srv/models
    realizar serve --models models.yaml

--memory, or --gpu-memory for models on a GPU, is then what all of them may take together. A model that does not fit
takes the memory of the one with the longest idle time relative to its load time; while all are in use, requests wait.
Each has a cache for one answer of --context, or of its own context, halved down to 4096 tokens while the model would
take more than half of the limit. docs/models-by-name.md describes the file of models.

The address answers from the start: GET /health says that the process is there, everything else is refused with 503
and Retry-After while the model is being loaded, and GET /ready says whether a request would be let in.

SIGTERM or Ctrl-C ends the server: new requests are refused, those under way are finished within --drain-timeout, and
the exit code is 0. A second one ends it at once.

The environment and a file set what flags do: --max-queue is REALIZAR_MAX_QUEUE there, and the key max-queue of the YAML
file that --config or REALIZAR_CONFIG names. A flag goes before the environment, the environment before the file.
--print-config says what holds. The file is read again when it changes and on SIGHUP; what cannot change while the
server runs is in the log. docs/configuration.md has the rest.`
}

// BeforeResolve is called by the parser, and reads what the environment and the file set.
func (c *serveCommand) BeforeResolve(parsed *kong.Context) error { return c.settings.resolve(parsed) }

// AfterApply is called by the parser.
func (c *serveCommand) AfterApply() error { return c.settings.applyArguments() }

// Validate is called by the parser.
func (c *serveCommand) Validate() error { return c.settings.placed(c.check()) }

// check returns an error for an invalid value.
func (c *serveCommand) check() error {
	switch {
	case c.JSON && !c.PrintConfig:
		return errors.New("--json: goes with --print-config")
	case c.Port < 0 || c.Port > 65535:
		return wrongFlag("port", c.Port, "1 to 65535, or 0 for a free one")
	case c.OllamaPort != nil && (*c.OllamaPort < 0 || *c.OllamaPort > 65535):
		return wrongFlag("ollama-port", *c.OllamaPort, "1 to 65535, or 0 for a free one")
	case (c.TLSCert == "") != (c.TLSKey == ""):
		return errors.New("--tls-cert and --tls-key go together")
	case c.KeepAlive < 0:
		return wrongFlag("keep-alive", c.KeepAlive, "more than 0, or 0 for as long as its memory is not needed")
	case (len(c.Models) > 1 || c.ModelsFrom != "") && len(c.ServedModelName) > 0:
		return errors.New("--served-model-name is for one model; of several each is called by its own name")
	case len(c.AllowRegistry) > 0 && !c.ManageModels:
		return errors.New("--allow-registry goes with --manage-models")
	case c.MaxQueue < 0:
		return wrongFlag("max-queue", c.MaxQueue, "0 or more")
	case c.MaxBody < 1:
		return wrongFlag("max-body", c.MaxBody, "1 or more")
	case c.MaxConnections < 0:
		return wrongFlag("max-connections", c.MaxConnections, "1 or more, or 0 for what the files allow")
	case c.MaxConnectionsPerAddress < 0:
		return wrongFlag("max-connections-per-address", c.MaxConnectionsPerAddress, "1 or more, or 0 for three quarters of all")
	case c.RequestTimeout < 0:
		return wrongFlag("request-timeout", c.RequestTimeout, "0 or more")
	case c.FirstTokenTimeout < 0:
		return wrongFlag("first-token-timeout", c.FirstTokenTimeout, "0 or more")
	case c.WriteTimeout <= 0:
		return wrongFlag("write-timeout", c.WriteTimeout, "more than 0")
	case c.TargetITL < 0:
		return wrongFlag("target-itl", c.TargetITL, "more than 0, or 0 for the device's own")
	case c.SSEKeepAlive < 0:
		return wrongFlag("sse-keep-alive", c.SSEKeepAlive, "more than 0, or 0 for none")
	case c.DrainTimeout < 0:
		return wrongFlag("drain-timeout", c.DrainTimeout, "0 or more")
	}
	for _, origin := range c.CORS {
		if err := http.NewCrossOriginProtection().AddTrustedOrigin(origin); origin != "*" && err != nil {
			return wrongFlag("cors", origin, "*, or an origin such as https://example.org")
		}
	}
	for _, name := range c.ServedModelName {
		if strings.TrimSpace(name) == "" {
			return &flagError{flag: "served-model-name", err: errors.New("the name is empty")}
		}
	}
	if err := c.validSpeculative(); err != nil {
		return err
	}
	return c.modelFlags.Validate()
}

// Run serves models until a signal arrives.
func (c *serveCommand) Run(a *app) error {
	if c.PrintConfig {
		return c.settings.write(a.out, c.JSON)
	}
	named, err := c.named(a)
	if err != nil {
		return err
	}
	list, err := c.withListed(named)
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
	defer h.http.Close() //nolint:errcheck // it cuts off the remaining clients
	r := &reloader{a: a, running: c, config: config, alone: h.alone, certificate: certificate, named: named, list: list, now: make(chan chan struct{}), ended: make(chan struct{})}
	hangups, stopHangups := r.hangups()
	defer stopHangups()

	free := machine.ReadMemory()
	loader := newModelLoader(a, config.Logger)
	models, err := c.pool(loader, list)
	if err != nil {
		if a.ctx.Err() != nil {
			return nil // the process was told to stop before it served anything
		}
		return err
	}
	defer func() {
		_ = h.http.Close() // cuts off the remaining clients, as models can be closed only when no request uses them
		_ = models.Close()
	}()
	_, limits := models.Memory()
	memory := limits[backends.Processor.Name] + hostCaches(list)
	config.Parallel = parallelOf(list)
	var size *servedSize
	if c.alone() {
		if h, ok := models.Look(list[0].name); ok {
			config.Parallel, memory = h.Model.Parallel(), h.Model.HostMemory()
			size = &servedSize{list[0].name, h.Model.Device(), h.Model.Context(), h.Model.Parallel()}
			h.Release()
		}
	}
	plan := planServe(free, memory, config.RequestMemory, heapMemory())
	plan.apply()
	plan.log(config.Logger, config.Connections)
	config.RequestMemory = plan.requests
	manager, err := c.manager(models, &config, r)
	if err != nil {
		return err
	}
	if manager != nil {
		defer manager.Close()
	}
	s, err := server.New(models, config)
	if err != nil {
		return err
	}
	defer s.Stop()
	r.server, r.loader, r.config = s, loader, config
	stopReloading := r.start(hangups)
	defer stopReloading()
	h.loading.Loaded(s.Handler())
	tidying, stopTidying := context.WithCancel(a.ctx)
	defer stopTidying()
	go plan.tidy(tidying, s.Held)
	if err := c.announce(a, h.addresses(), namesOf(list), size); err != nil {
		return err
	}
	go logModels(tidying, models, config.Logger)
	go preload(tidying, models, list)
	select {
	case err := <-h.ended:
		s.Stop()
		return err
	case <-a.ctx.Done():
		stopReloading()
		return r.running.drain(h.http, s, config.Logger)
	}
}

// config returns the server's configuration from the flags.
func (c *serveCommand) config(a *app) (server.Config, error) {
	connections, err := server.NewConnections(c.connectionLimits())
	if err != nil {
		return server.Config{}, err
	}
	config := server.Config{
		Version: readBuild().version, Dialects: dialects.All, RequestMemory: int64(c.RequestMemory),
		Connections: connections, JSON: c.jsonOptions(),
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
		if term.IsTerminal(int(a.stderr.Fd())) {
			config.Logger = slog.New(newLineHandler(a.err))
		}
	}
	if c.APIKeyFile != "" {
		if config.Keys, err = server.ReadKeys(c.APIKeyFile); err != nil {
			return config, err
		}
	}
	c.setLive(&config)
	return config, nil
}

// setLive sets the values that may change while the server runs, except the keys.
func (c *serveCommand) setLive(config *server.Config) {
	config.MaxQueue, config.MaxBody = c.MaxQueue, int64(c.MaxBody)
	config.Deadlines = server.Deadlines{FirstToken: c.FirstTokenTimeout, Write: c.WriteTimeout, Request: c.RequestTimeout}
	config.Hosts, config.Origins = c.AllowHost, c.CORS
	config.LogPrompts, config.Lenient, config.StreamKeepAlive = c.LogPrompts, c.Lenient, c.SSEKeepAlive
}

// connectionLimits returns the most connections in all, and for an address.
func (c *serveCommand) connectionLimits() (all, each int) {
	return connectionLimits(c.MaxConnections, c.MaxConnectionsPerAddress, openFiles())
}

// fileName returns a model's name from its file or folder.
func fileName(path string) string {
	if whole, err := filepath.Abs(path); err == nil {
		path = whole
	}
	return names.Title(filepath.ToSlash(path))
}

// namesOf formats the names of models: all of a few, and the number of the rest.
func namesOf(models []servedModel) string {
	const few = 8
	var text []string
	for _, m := range models[:min(few, len(models))] {
		text = append(text, m.name)
	}
	if more := len(models) - few; more > 0 {
		text = append(text, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(text, ", ")
}

// announce reports that the server answers requests, and at which addresses.
func (c *serveCommand) announce(a *app, addresses []net.Addr, name string, size *servedSize) error {
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
	if term.IsTerminal(int(a.stdout.Fd())) {
		return introduce(a.out, fmt.Sprintf("%s://%s", scheme, addresses[0]), size)
	}
	return nil
}

// lastWords is how long clients have to read the rest of their answers when all answers have ended.
const lastWords = 2 * time.Second

// flushSpans sends the remaining spans. An unreachable collector must not keep the server from
// ending.
func flushSpans(flush func(context.Context) error) {
	ctx, cancel := context.WithTimeout(context.Background(), lastWords)
	defer cancel()
	_ = flush(ctx)
}

// drain finishes running requests within the time allowed.
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
	_ = h.Shutdown(ctx) // clients that do not read are cut off
	return nil
}
