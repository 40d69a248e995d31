package grammar

import (
	"fmt"
	"runtime"

	"github.com/realizar/realizar/internal/rx"
)

// maxWork bounds the work of one mask, or of one byte of a text, in steps of threads, items and
// derivatives: a few seconds at most.
const maxWork = 1 << 25

// longWork is the work after which a mask or text needs one of turns, which bounds how many of them
// run at a time, so that they leave cores to the model.
const longWork = 1 << 15 // a few milliseconds

var turns = make(chan struct{}, max(1, runtime.GOMAXPROCS(0)/4))

// scratch is the reusable memory of steps and masks.
type scratch struct {
	maker   *maker
	key     []byte
	ends    []end
	threads []thread
	other   []thread
	begins  []begun
	work    int // of the byte, or the mask
	all     int // since begin
	turn    bool

	// For masks.
	walker     walker
	shaper     shaper
	vocabulary *Vocabulary // for which shaper is initialized
}

// begin returns the scratch memory of one step or mask, which must call end.
func (g *Grammar) begin() *scratch {
	sc := g.makers.Get().(*scratch)
	sc.work, sc.all = 0, 0
	return sc
}

func (g *Grammar) end(sc *scratch) {
	if sc.turn {
		sc.turn = false
		<-turns
	}
	g.makers.Put(sc)
}

// spend counts work. It may wait for a turn, so the caller must hold no lock.
func (sc *scratch) spend(n int) error {
	if sc.all += n; sc.all > longWork && !sc.turn {
		turns <- struct{}{}
		sc.turn = true
	}
	if sc.work += n; sc.work > maxWork {
		return fmt.Errorf("grammar: a step takes more than %d steps of its own: %w", maxWork, ErrLimit)
	}
	return nil
}

// begin returns the first states of the lexemes that s waits for. They are valid until the next
// call.
func (sc *scratch) begin(s *set, v *Vocabulary) ([]begun, error) {
	states, err := s.begin(v, sc.begins[:0])
	sc.begins = states[:0]
	return states, err
}

// row returns the row of a state.
func (sc *scratch) row(st *rx.State) (*rx.Row, error) {
	if row := st.Built(); row != nil {
		return row, nil
	}
	before := st.Automaton().Work()
	row, err := st.Row()
	if err != nil {
		return nil, fmt.Errorf("grammar: %w: %w", ErrLimit, err)
	}
	return row, sc.spend(int(st.Automaton().Work() - before))
}
