//go:build gpu

package cuda

import "testing"

func TestGPUFloatBits(t *testing.T) { floatsAgree(t, openGPU(t, Options{})) }
