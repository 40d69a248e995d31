package server

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/realizar/realizar/internal/server/promtext"
)

// routeCounts count the requests of a route.
type routeCounts struct {
	route    string
	statuses []statusCount // by status
	seconds  []uint64      // by requestBounds, and a last one without a bound
	sum      float64
}

type statusCount struct {
	status int
	n      uint64
}

var (
	httpRequests = promtext.Counter("realizar_http_requests_total", "Answered requests, by route and status; 499 means that the client left before.", "route", "code")
	httpSeconds  = promtext.Histogram("realizar_http_request_seconds", "Seconds from a request's headers to the end of its answer.", "route")
	httpPanics   = promtext.Counter("realizar_http_panics_total", "Requests that ended in a panic of the server.")

	requestBounds = []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 20, 40, 80, 160, 320, 640}
)

// answered counts a request that has ended.
func (m *metrics) answered(x *Exchange) {
	route := x.Pattern
	if route == "" {
		route = "none" // it was answered before it was routed
	}
	took := time.Since(x.begun).Seconds()
	var failure *panicError
	m.mu.Lock()
	defer m.mu.Unlock()
	if as(x.err, &failure) {
		m.panics++
	}
	i, ok := slices.BinarySearchFunc(m.routes, route, func(r routeCounts, route string) int { return strings.Compare(r.route, route) })
	if !ok {
		m.routes = slices.Insert(m.routes, i, routeCounts{route: route, seconds: make([]uint64, len(requestBounds)+1)})
	}
	r := &m.routes[i]
	i, ok = slices.BinarySearchFunc(r.statuses, x.status, func(c statusCount, status int) int { return c.status - status })
	if !ok {
		r.statuses = slices.Insert(r.statuses, i, statusCount{status: x.status})
	}
	r.statuses[i].n++
	i, _ = slices.BinarySearch(requestBounds, took)
	r.seconds[i]++
	r.sum += took
}

// appendRequests appends the counts of requests.
func (m *metrics) appendRequests(b []byte) []byte {
	m.mu.Lock()
	defer m.mu.Unlock()
	b = httpRequests.AppendHead(b)
	for _, r := range m.routes {
		for _, c := range r.statuses {
			b = httpRequests.Append(b, float64(c.n), r.route, strconv.Itoa(c.status))
		}
	}
	b = httpSeconds.AppendHead(b)
	for _, r := range m.routes {
		b = httpSeconds.AppendHistogram(b, requestBounds, r.seconds, r.sum, r.route)
	}
	return httpPanics.Append(httpPanics.AppendHead(b), float64(m.panics))
}
