package watch

import (
	"math"
	"time"
)

// An Interval is what went on between two samples of a server.
type Interval struct {
	To        *Sample
	Seconds   float64 // that it took, more than 0
	Restarted bool    // the server has begun anew since; what it did before is not known

	from Sample // with counters at 0 where it has begun anew
}

// Between is the interval from one sample to a later one.
func Between(from, to *Sample) *Interval {
	i := &Interval{To: to, Seconds: max(time.Millisecond, to.At.Sub(from.At)).Seconds(), from: *from}
	if i.Restarted = restarted(from, to); i.Restarted {
		i.from.counters = [counters]float64{}
		i.from.latencies = [latencies]Histogram{}
	}
	return i
}

// restarted says whether the process is another one. Where its start is not known, a counter that
// went back says so; where it is, that comes of a model which is not served any more.
func restarted(from, to *Sample) bool {
	if apart := math.Abs(to.started - from.started); !math.IsNaN(apart) {
		return apart > 1 // it comes out differently by a little on some systems
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

// Grown is how much came to a counter, NaN where the server does not say.
func (i *Interval) Grown(c Counter) float64 { return max(0, i.To.counters[c]-i.from.counters[c]) }

// Rate is that in a second.
func (i *Interval) Rate(c Counter) float64 { return i.Grown(c) / i.Seconds }

// Busy is the share of the time during which a step was under way, 0 to 1.
func (i *Interval) Busy() float64 { return min(1, i.Rate(StepSeconds)) }

// Hits is the share of the tokens that the cache was asked for and held, 0 to 1; NaN
// where it was not asked.
func (i *Interval) Hits() float64 { return min(1, i.Grown(CacheHits)/i.Grown(CacheQueries)) }

// Hits is the same since the server began.
func (s *Sample) Hits() float64 {
	return min(1, s.counters[CacheHits]/s.counters[CacheQueries])
}

// Latency is the distribution of the values that came.
func (i *Interval) Latency(l Latency) Histogram { return i.To.latencies[l].since(i.from.latencies[l]) }
