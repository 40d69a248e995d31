package modeltest

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/realizar/realizar/modelfile"
	"github.com/realizar/realizar/tensor"
)

// words are the words of [Babble].
const words = `a about above after again air all along also always an and another answer any are around as ask at away
back be bear because been before began begin below best better between bird black blue boat body book both bright bring
brother brown build but by call came can care carry change child city clear close cloud cold come could country course cross
dance dark day deep did do door down draw dream dry each early earth east eat end enough even evening ever every eye face
fall far fast father feel feet few field find fire first fish five floor flow fly follow food for form found four free friend
from full game garden gave gentle give glass go gold good grass great green ground grow had half hand happy hard has have he
head hear heart heavy held help her here high hill him his hold home horse hot hour house how hundred if in is island it
just keep kind king knew know lake land large last late laugh learn leave left less let letter life light like line listen
little live long look lost love low made make man many map mark may mean men might milk mind money moon more morning most
mother mountain move much music must my name near never new night no north not now number of off often old on once one only
open or other our out over own paper part pass path people place plain plant play point quiet rain ran reach read ready red
rest ring rise river road rock room round run sail said same sand saw say sea second see seed seem seen send set seven shall
shape she ship short should show side silver simple sing sister six sky sleep slow small snow so soft some song soon sound
south space speak spring stand star start stay step still stone stood stop story street strong such summer sun table take
talk tall tell ten than that the their them then there these they thing think this those thought three through time to
together told took top toward town tree true turn two under until up upon us use very voice wait walk wall want warm was
watch water way we well went were west what wheel when where which while white who whole why wide wild will wind window
winter wish with without wolf wonder wood word work world would write year yellow yes yet you young your`

// Babble returns a GGUF file of a model with random weights that says random words, to try the
// program without a download.
func Babble(tb testing.TB) []byte {
	tb.Helper()
	s := newShape([]Option{Seed(2), DType(tensor.Q8_0), Context(1024), Metadata("general.name", "babble: random weights")})
	var said []string
	for w := range strings.FieldsSeq(words) {
		said = append(said, "Ġ"+w)
	}
	s.vocabulary = byteAlphabet()
	marks := []int{s.tokenID(tb, "."), s.tokenID(tb, ",")}
	first := len(s.vocabulary)
	s.vocabulary = append(s.vocabulary, said...)
	last := len(s.vocabulary)
	s.vocabulary = append(s.vocabulary, SpecialTokens...)
	s.merges = []string{"t h"} // none of them joins anything here
	s.silent = func(token int) bool { return (token < first || token >= last) && !slices.Contains(marks, token) }
	var file bytes.Buffer
	if err := modelfile.WriteGGUF(&file, s.ggufMetadata(tb), s.ggufTensors(tb)); err != nil {
		tb.Fatal(err)
	}
	return file.Bytes()
}
