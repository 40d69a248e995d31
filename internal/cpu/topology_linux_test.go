package cpu

import (
	"slices"
	"testing"
	"testing/fstest"
)

func files(pairs ...string) fstest.MapFS {
	root := fstest.MapFS{}
	for i := 0; i < len(pairs); i += 2 {
		root[pairs[i]] = &fstest.MapFile{Data: []byte(pairs[i+1])}
	}
	return root
}

func TestCoresOf(t *testing.T) {
	const dir = "sys/devices/system/cpu/cpu"
	pairs := files(
		dir+"0/topology/core_cpus_list", "0,4\n", dir+"4/topology/core_cpus_list", "0,4\n",
		dir+"1/topology/thread_siblings_list", "1,5\n", dir+"5/topology/thread_siblings_list", "1,5\n",
		dir+"2/topology/core_cpus_list", "\n",
	)
	for _, test := range []struct {
		name    string
		allowed []int
		want    [][]int
	}{
		{"none", nil, nil},
		{"pairs", []int{0, 1, 4, 5}, [][]int{{0, 4}, {1, 5}}},
		{"one of a pair", []int{4, 5}, [][]int{{4}, {5}}},
		{"nothing said", []int{2, 3, 7}, [][]int{{2}, {3}, {7}}},
	} {
		if got := coresOf(pairs, test.allowed); !slices.EqualFunc(got, test.want, slices.Equal) {
			t.Errorf("%s: %v, want %v", test.name, got, test.want)
		}
	}
}
