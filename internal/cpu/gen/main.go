// Command gen writes the amd64 assembly of package cpu and its declarations, one family of kernels
// per run, and the tables of the kernels for number formats. go generate in this folder runs it for
// all families.
package main

//go:generate go run . -family quantized -out ../quantized_amd64.s -stubs ../quantized_stubs_amd64.go -pkg cpu
//go:generate go run . -family memory -out ../memory_amd64.s -stubs ../memory_stubs_amd64.go -pkg cpu
//go:generate go run . -family float -out ../float_amd64.s -stubs ../float_stubs_amd64.go -pkg cpu
//go:generate go run . -family attention -out ../attention_amd64.s -stubs ../attention_stubs_amd64.go -pkg cpu
//go:generate go run . -family vector -out ../vector_amd64.s -stubs ../vector_stubs_amd64.go -pkg cpu
//go:generate go run . -family peak -out ../peak_amd64.s -stubs ../peak_stubs_amd64.go -pkg cpu
//go:generate go run . -family tables

import (
	"flag"
	"fmt"
	"os"

	. "github.com/mmcloughlin/avo/build"
)

// families are the groups of kernels; each has a file here and two files in package cpu.
var families = map[string]func(){
	"attention": attention,
	"float":     float,
	"memory":    memory,
	"peak":      peak,
	"quantized": quantized,
	"vector":    vector,
}

var family = flag.String("family", "", "the kernels to write")

func main() {
	flag.Parse()
	if *family == "tables" {
		if err := formatTables(); err != nil {
			fmt.Fprintln(os.Stderr, "gen:", err)
			os.Exit(1)
		}
		return
	}
	write, ok := families[*family]
	if !ok {
		fmt.Fprintf(os.Stderr, "gen: no family %q\n", *family)
		os.Exit(2)
	}
	ConstraintExpr("amd64")
	write()
	Generate()
}
