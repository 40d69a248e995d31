package grammar

import (
	"fmt"
	"runtime"

	"github.com/realizar/realizar/internal/rx"
)

// maxWork bounds what one mask, or one byte of a text, may take, in steps of threads, items and
// derivatives: some seconds at most.
const maxWork = 1 << 25

// Few of those that take long go on at one time, so that the processor is there for what else
// there is to do: who takes more than longWork waits for its turn.
const longWork = 1 << 15 // some milliseconds

var turns = make(chan struct{}, max(1, runtime.GOMAXPROCS(0)/4))

// scratch is what steps and masks use and leave behind for the next.
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

	// Of masks.
	walker     walker
	shaper     shaper
	vocabulary *Vocabulary // of shaper
}

// begin is what one step or mask of g uses, until end.
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

// spend counts work. The caller holds no lock, as it may have to wait for its turn.
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

// begin is the states of the lexemes that s waits for, until the next call.
func (sc *scratch) begin(s *set, v *Vocabulary) ([]begun, error) {
	states, err := s.begin(v, sc.begins[:0])
	sc.begins = states[:0]
	return states, err
}

// row is the row of a state.
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
