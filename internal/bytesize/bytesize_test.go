package bytesize

import "testing"

func TestParse(t *testing.T) {
	for text, want := range map[string]int64{
		"0": 0, "4096": 4096, "12b": 12, "512MiB": 512 << 20, "8GiB": 8 << 30, "4G": 4 << 30, "4g": 4 << 30, "1.5 GiB": 3 << 29,
		"64K": 64 << 10, "2T": 2 << 40, "3kb": 3000, "3MB": 3e6, "3 GB": 3e9, " 1TB ": 1e12, "1e3": 1000,
	} {
		if got, err := Parse(text); err != nil || got != want {
			t.Errorf("%q is %d, %v, want %d", text, got, err, want)
		}
	}
	for _, text := range []string{"", "G", "8X", "-1", "-8GiB", "8GiBs", "nan", "inf", "1e30", "9000000T", "1 2", "0x"} {
		if got, err := Parse(text); err == nil {
			t.Errorf("%q is %d, want an error", text, got)
		}
	}
}

func TestText(t *testing.T) {
	for n, want := range map[int64]string{0: "0 bytes", 1023: "1023 bytes", 1024: "1.0 KiB", 3 << 19: "1.5 MiB", 5 << 30: "5.0 GiB", 1 << 41: "2.0 TiB"} {
		if got := Text(n); got != want {
			t.Errorf("%d is %q, want %q", n, got, want)
		}
	}
}
