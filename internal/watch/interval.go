package watch

import (
	"math"
	"time"
)

// An Interval is the difference between two samples of a server.
type Interval struct {
	To        *Sample
	Seconds   float64 // its length, more than 0
	Restarted bool    // the server restarted during it; its work before that is not known

	from Sample // with counters at 0 if the server restarted
}

// Between returns the interval from one sample to a later one.
func Between(from, to *Sample) *Interval {
	i := &Interval{To: to, Seconds: max(time.Millisecond, to.At.Sub(from.At)).Seconds(), from: *from}
	if i.Restarted = restarted(from, to); i.Restarted {
		i.from.counters = [counters]float64{}
		i.from.latencies = [latencies]Histogram{}
	}
	return i
}

// restarted reports whether the server's process changed. If its start is not known, a counter that
// went back shows it; otherwise such a counter is due to a model that is not served any more.
func restarted(from, to *Sample) bool {
	if apart := math.Abs(to.started - from.started); !math.IsNaN(apart) {
		return apart > 1 // the start varies a little on some systems
	}
	for c := range to.counters {
		if to.counters[c] < from.counters[c] {
			return true
		}
	}
	for l := range to.latencies {
		if to.latencies[l].Count() < from.latencies[l].Count() {
			return true
		}
	}
	return false
}

// Grown returns the increase of a counter, NaN if the server does not show it.
func (i *Interval) Grown(c Counter) float64 { return max(0, i.To.counters[c]-i.from.counters[c]) }

// Rate returns the increase of a counter per second.
func (i *Interval) Rate(c Counter) float64 { return i.Grown(c) / i.Seconds }

// Busy returns the share of the time with a step in flight, 0 to 1.
func (i *Interval) Busy() float64 { return min(1, i.Rate(StepSeconds)) }

// Hits returns the share of the tokens looked up in the cache that were cached, 0 to 1; NaN if
// there were no lookups.
func (i *Interval) Hits() float64 { return min(1, i.Grown(CacheHits)/i.Grown(CacheQueries)) }

// Hits returns the same share since the server started.
func (s *Sample) Hits() float64 {
	return min(1, s.counters[CacheHits]/s.counters[CacheQueries])
}

// Right returns the share of the proposed tokens that the model sampled, 0 to 1; NaN if none were
// proposed.
func (i *Interval) Right() float64 { return min(1, i.Grown(Accepted)/i.Grown(Proposed)) }

// Latency returns the distribution of the values in the interval.
func (i *Interval) Latency(l Latency) Histogram { return i.To.latencies[l].since(i.from.latencies[l]) }
