package grammar_test

import (
	"testing"

	"pgregory.net/rapid"
)

// FuzzGrammar draws grammars and compares them with an exhaustive search.
func FuzzGrammar(f *testing.F) {
	all := allTexts("ab", 4)
	f.Fuzz(rapid.MakeFuzz(func(t *rapid.T) { agreesWithTryingEverything(t, all, 4) }))
}

// FuzzMask draws grammars and vocabularies and compares masks with a trial of every token.
func FuzzMask(f *testing.F) {
	f.Fuzz(rapid.MakeFuzz(maskIsEveryTokenThatFits))
}
