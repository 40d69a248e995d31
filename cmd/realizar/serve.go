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

	"github.com/realizar/realizar"
	"github.com/realizar/realizar/internal/backends"
	"github.com/realizar/realizar/internal/machine"
	"github.com/realizar/realizar/internal/names"
	"github.com/realizar/realizar/internal/server"
	"github.com/realizar/realizar/internal/server/dialects"
	webpage "github.com/realizar/realizar/internal/server/page"
)

// serveCommand is `realizar serve`.
type serveCommand struct {
	Models []string `arg:"" name:"model" optional:"" help:"${models} Requests name one of several models, which is loaded on demand. Default: demo."`

	ModelsFrom      string        `name:"models" placeholder:"FILE|FOLDER|store" live:"file" common:"" help:"More models: those that a YAML file describes, those in a folder, or with store all that realizar list shows. Files and folders are read again when they change."`
	Host            string        `default:"127.0.0.1" placeholder:"ADDRESS" group:"network" common:"" help:"Address to listen on; 0.0.0.0 is all addresses of the machine. Default: ${default}."`
	Port            int           `default:"8080" placeholder:"N" group:"network" common:"" help:"Port; 0 takes a free one. Default: ${default}."`
	OllamaPort      *int          `placeholder:"N" group:"network" help:"Second port with the same endpoints, for clients of Ollama, which expect 11434; 0 takes a free port. Default: none."`
	ServedModelName []string      `placeholder:"NAME" sep:"none" common:"" help:"Name of a single model in requests. Repeatable; answers have the first name. Default: the name of the file or of the model."`
	KeepAlive       time.Duration `name:"keep-alive" default:"0s" placeholder:"TIME" live:"yes" help:"Unload a model after this idle time, such as 5m. Default: when another model needs its memory."`
	APIKeyFile      string        `name:"api-key-file" placeholder:"FILE" live:"file" group:"network" common:"" help:"Require one of the API keys in FILE, one per line. Read again on SIGHUP."`
	TLSCert         string        `name:"tls-cert" placeholder:"FILE" live:"file" group:"network" help:"Serve HTTPS with this certificate, in PEM. The file is read again on SIGHUP."`
	TLSKey          string        `name:"tls-key" placeholder:"FILE" live:"file" group:"network" help:"The private key of the certificate, in PEM."`
	CORS            []string      `name:"cors" placeholder:"ORIGIN" sep:"none" live:"yes" group:"network" help:"Allow scripts of this origin, such as https://example.org; * allows all origins. Repeatable. Default: localhost at any port."`

	AllowHost []string `name:"allow-host" placeholder:"NAME" sep:"none" live:"yes" group:"network" help:"Answer requests whose Host header is this name; * is any name. Repeatable. Default: on an address of the loopback interface, localhost and IP addresses, else any name."`

	NoUI bool `name:"no-ui" help:"Serve no web page at /."`

	ManageModels  bool     `name:"manage-models" help:"Let clients pull, copy, create, push and delete models of this machine, with /api/pull and other endpoints of Ollama."`
	AllowRegistry []string `name:"allow-registry" placeholder:"HOST" sep:"none" help:"With --manage-models, let clients name this registry or web server, such as localhost:5000. Repeatable. Default: the registries of Hugging Face and Ollama only."`

	MaxQueue                 int      `default:"1024" placeholder:"N" live:"yes" group:"limits" help:"Most answers that wait for their turn; further requests are refused with 429. Default: ${default}."`
	MaxBody                  byteSize `default:"32MiB" placeholder:"SIZE" live:"yes" group:"limits" help:"Largest body of a request. Default: ${default}."`
	RequestMemory            byteSize `default:"0" placeholder:"SIZE" group:"limits" help:"Limit of host memory for all requests together: bodies, texts, tokens and unsent parts of answers. Further requests are refused with 429. Default: a quarter of what the model leaves."`
	MaxConnections           int      `default:"0" placeholder:"N" live:"yes" group:"network" help:"Most connections; a new one replaces one that waits for its client. Default: as many as the limit of open files allows, at most 16384."`
	MaxConnectionsPerAddress int      `default:"0" placeholder:"N" live:"yes" group:"network" help:"Most connections from one address. Default: three quarters of --max-connections."`

	RequestTimeout    time.Duration `default:"0s" placeholder:"TIME" live:"yes" group:"limits" help:"Time limit for a request, such as 10m. Default: none."`
	FirstTokenTimeout time.Duration `default:"0s" placeholder:"TIME" live:"yes" group:"limits" help:"Time limit for the first token, from the arrival of the request. Default: none."`
	WriteTimeout      time.Duration `default:"30s" placeholder:"TIME" live:"yes" group:"limits" help:"Time limit for the client to read a piece of its answer. Default: ${default}."`
	SSEKeepAlive      time.Duration `name:"sse-keep-alive" default:"15s" placeholder:"TIME" live:"yes" group:"limits" help:"Send a comment on an event stream after this time without events; 0 sends none. Default: ${default}."`
	DrainTimeout      time.Duration `default:"30s" placeholder:"TIME" live:"yes" group:"limits" help:"Time limit for running requests after SIGTERM. Default: ${default}."`

	Log     string `default:"text" enum:"text,json,none" placeholder:"text|json|none" group:"log" help:"Format of the request log on standard error. Default: ${default}."`
	Lenient bool   `live:"yes" help:"Ignore unknown fields of a request instead of refusing it; the log and the header X-Left-Out name them."`

	LogPrompts bool `live:"yes" group:"log" help:"Include the text of requests in the log."`

	OTLPEndpoint string `name:"otlp-endpoint" placeholder:"URL" group:"log" help:"Send a span for each request, and the metrics once a minute, to the OpenTelemetry collector at URL, such as http://localhost:4318. Needs a program built with -tags otel."`

	Replicas int `default:"1" placeholder:"N" group:"model" help:"Run N copies of a single model, each on one GPU, or on an equal share of those that --device numbers. Each request goes to the copy that has its beginning cached and the least to do."`

	kvEventFlags
	kvTransferFlags
	pullFlag
	jsonFlags
	modelFlags
	speculativeFlags
	stepFlags
	settingsFlags
}

// Help is shown below the command's line.
func (*serveCommand) Help() string {
	return `serve answers requests of the OpenAI, Anthropic, Ollama and llama.cpp APIs until it is stopped. When
the model is loaded it writes a line with each address to standard output.

Examples:

    realizar serve model.gguf
    realizar serve ./Qwen3-0.6B --host 0.0.0.0 --api-key-file keys.txt --parallel 32
    realizar serve model.gguf --port 0 --served-model-name small
    realizar serve model.gguf --ollama-port 11434
    realizar serve --config serve.yaml
    curl localhost:8080/v1/chat/completions -H 'Content-Type: application/json' \
        -d '{"model": "small", "messages": [{"role": "user", "content": "Why is the sky blue?"}]}'

Several models: each request names its model, and loads it if needed.

    realizar serve small.gguf large.gguf --memory 16GiB --keep-alive 10m
    realizar serve --models /srv/models
    realizar serve --models models.yaml

--memory, or --gpu-memory for models on a GPU, then limits all models together. If a model does not
fit, the server unloads the model whose idle time is longest relative to its load time; while all
models are in use, requests wait. The KV cache of each model has room for one request of --context
tokens, or of the context of the model, halved down to 4096 tokens while the model would take more
than half of the limit. docs/models-by-name.md describes the file of models.

The server listens from the start. While the model loads, GET /health reports a live process, GET
/ready reports whether the server admits requests, and all other requests are refused with 503 and
Retry-After.

SIGTERM or Ctrl-C stops the server: it refuses new requests, finishes running requests within
--drain-timeout, and exits with 0. A second signal ends it at once.

The environment and a file set what flags set: --max-queue is REALIZAR_MAX_QUEUE, and the key
max-queue of the YAML file that --config or REALIZAR_CONFIG names. A flag overrides the environment,
and the environment overrides the file. --print-config shows the settings in effect. The file is read
again when it changes and on SIGHUP; the log names settings that cannot change while the server runs.
docs/configuration.md has the rest.`
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
		return errors.New("--json needs --print-config")
	case c.Port < 0 || c.Port > 65535:
		return wrongFlag("port", c.Port, "1 to 65535, or 0 for a free one")
	case c.OllamaPort != nil && (*c.OllamaPort < 0 || *c.OllamaPort > 65535):
		return wrongFlag("ollama-port", *c.OllamaPort, "1 to 65535, or 0 for a free one")
	case (c.TLSCert == "") != (c.TLSKey == ""):
		return errors.New("--tls-cert and --tls-key go together")
	case c.KeepAlive < 0:
		return wrongFlag("keep-alive", c.KeepAlive, "more than 0, or 0 until its memory is needed")
	case (len(c.Models) > 1 || c.ModelsFrom != "") && len(c.ServedModelName) > 0:
		return errors.New("--served-model-name names a single model; of several models each has its own name")
	case c.Replicas < 1 || c.Replicas > realizar.MaxReplicas:
		return wrongFlag("replicas", c.Replicas, fmt.Sprintf("1 to %d", realizar.MaxReplicas))
	case c.Replicas > 1 && (len(c.Models) > 1 || c.ModelsFrom != ""):
		return errors.New("--replicas is for a single model; serve each model with a server of its own, or leave it out")
	case len(c.AllowRegistry) > 0 && !c.ManageModels:
		return errors.New("--allow-registry needs --manage-models")
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
	if err := c.validate(c); err != nil {
		return err
	}
	if err := c.validTransfer(c); err != nil {
		return err
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
		defer flushOTLP(flush)
	}
	certificate, err := c.certificate()
	if err != nil {
		return err
	}
	h, err := c.listen(&config)
	if err != nil {
		return err
	}
	for _, m := range list {
		h.loading.Models = append(h.loading.Models, m.name)
	}
	h.begin(certificate)
	defer h.http.Close() //nolint:errcheck // it cuts off the remaining clients
	r := &reloader{a: a, running: c, config: config, alone: h.alone, certificate: certificate, named: named, list: list, now: make(chan chan struct{}), ended: make(chan struct{})}
	hangups, stopHangups := r.hangups()
	defer stopHangups()

	free := machine.ReadMemory()
	loader := newModelLoader(a, config.Logger)
	events, err := c.publish(loader, namesOf(list), h.addresses()[0], config.Logger)
	if err != nil {
		return err
	}
	if events != nil {
		defer events.Close() //nolint:errcheck // subscribers have the last events, or are cut off
	}
	transfer, err := c.transfers(loader, namesOf(list), certificate, config.Logger)
	if err != nil {
		return err
	}
	if transfer != nil {
		defer transfer.Close() //nolint:errcheck // peers that wait for pages compute them
		config.Transfer = transfer
	}
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
	if c.OTLPEndpoint != "" {
		flush, err := s.SendMetrics(a.ctx, c.OTLPEndpoint)
		if err != nil {
			return err
		}
		defer flushOTLP(flush)
	}
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
		a.notef("anyone who can reach %s can use the model; --api-key-file requires a key", addresses[0])
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

// flushOTLP sends the remaining spans, or the metrics a last time. An unreachable collector must not
// keep the server from ending.
func flushOTLP(flush func(context.Context) error) {
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
