package main

import (
	"cmp"
	"context"
	"log/slog"
	"math"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"time"

	"github.com/realizar/realizar/internal/machine"
	"github.com/realizar/realizar/internal/server"
)

// Files that the process needs in addition to connections: the model's, the log, and what the
// system tells about memory. At most a quarter of the limit is reserved.
const spareFiles = 64

// mostConnections is the limit if the system does not bound the number of files.
const mostConnections = 16384

// connectionLimits returns the most connections in all and for an address, if the flags do not say
// and the process may open that many files: one address leaves a quarter to others.
func connectionLimits(most, perAddress, files int) (all, each int) {
	all = cmp.Or(most, max(1, min(files-min(spareFiles, files/4), mostConnections)))
	return all, cmp.Or(perAddress, max(1, all-all/4))
}

// A servePlan is the memory of the parts of a server, in bytes.
type servePlan struct {
	machine  machine.Memory // before the model is loaded
	model    int64          // planned for the model
	requests int64          // held by all requests together
	heap     int64          // GOMEMLIMIT; 0 if not known
}

// The memory that is planned for requests if no flag says how much.
const (
	leastRequests = 16 << 20
	mostRequests  = 4 << 30
	// If the free memory is not known.
	unknownRequests = 256 << 20
)

// planServe divides what is free between a model that takes so much, and requests, which
// may hold so many bytes, or for 0 a quarter of what the model leaves. The heap may then
// grow by as much as they hold and a part more: what is in use, what was, and what the
// collector has not seen yet.
func planServe(m machine.Memory, model, requests, heap int64) servePlan {
	p := servePlan{machine: m, model: model, requests: requests}
	rest := m.Free - model
	switch {
	case p.requests > 0:
	case m.Free == 0 && m.Limit == "":
		p.requests = unknownRequests
	default:
		p.requests = min(max(rest/4, leastRequests), mostRequests)
	}
	if m.Free > 0 {
		p.heap = heap + max(p.requests+p.requests/4, rest/3)
	}
	return p
}

// apply bounds the heap unless the environment does.
func (p *servePlan) apply() {
	if p.heap > 0 && os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(p.heap)
	}
}

// heapMemory returns how much of the system's memory the runtime has.
func heapMemory() int64 {
	s := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(s)
	return int64(s[0].Value.Uint64() - s[1].Value.Uint64())
}

// log logs the server's limits.
func (p *servePlan) log(l *slog.Logger, c *server.Connections) {
	attrs := []any{
		slog.String("memory", byteText(p.machine.Total)), slog.String("free", byteText(p.machine.Free)),
		slog.String("limit", cmp.Or(p.machine.Limit, "the machine")), slog.String("model", byteText(p.model)),
		slog.String("requests", byteText(p.requests)), slog.String("heap", byteText(p.heap)),
		slog.Int("connections", c.Stats().Most), slog.Int("files", openFiles()),
	}
	if t := machine.Processors(); t.Limit < math.MaxInt32 {
		attrs = append(attrs, slog.Int("processors", t.Limit), slog.String("processors_limit", t.By))
	}
	l.Info("limits", attrs...)
}

// The heap is given back where it is larger than after the model was loaded by keptHeap,
// and requests hold little. The collector runs by itself only when the heap grows.
const (
	keptHeap  = 16 << 20
	tidyEvery = time.Second
)

// tidy returns memory that requests held to the system, until ctx ends.
func (p *servePlan) tidy(ctx context.Context, held func() int64) {
	least := heapMemory() + keptHeap
	tick := time.NewTicker(tidyEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if heapMemory() > least && held() < p.requests/16 {
			debug.FreeOSMemory()
			least = heapMemory() + keptHeap
		}
	}
}
