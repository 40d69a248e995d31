package cuda

import (
	"github.com/realizar/realizar/internal/cuda/driver"
	"github.com/realizar/realizar/internal/plan"
)

// rowParams is what a row's sampling is told, see kernels/sample.cu.
type rowParams struct {
	temperature, topP, minP float32
	topK                    int32
	seed, position          uint64
	choice, want            uint32
	mask, last              int32
	typical, repetition     float32
	frequency, presence     float32
	adjusted, _             int32
	adjustments             driver.DevicePtr
}

// rowResult is what comes back of a row.
type rowResult struct {
	token, status  int32
	logProbability float32
	_              uint32
}

// What became of a row.
const (
	rowNotFinite = 1 + iota
	rowEmptyMask
	rowNoLogit
)

// Sizes of what the sampling kernels keep, see Scratch in kernels/sample.cu.
const (
	samplingFixed       = 2*2048*8 + 1024*8 + 32*4
	samplingPerBlock    = 32
	samplingPerSegment  = 16
	samplingSegment     = 128
	samplingBlockTokens = 1024
	samplingMaxBlocks   = 128
	samplingCluster     = 8
)

// samplingBlocks is how many blocks look at a row's logits.
func samplingBlocks(vocab int) int {
	return min(samplingMaxBlocks, (vocab+samplingBlockTokens-1)/samplingBlockTokens)
}

// samplingBytes is what the kernels keep for a row.
func samplingBytes(vocab int) int {
	return align(samplingFixed + samplingPerBlock*samplingBlocks(vocab) + samplingPerSegment*((vocab+samplingSegment-1)/samplingSegment))
}

type sampleArgs struct {
	logits           driver.DevicePtr
	stride, vocab    int32
	params, masks    driver.DevicePtr
	maskWords, _     int32
	count, scratch   driver.DevicePtr
	scratchStride    int64
	results, sampled driver.DevicePtr
	blocks, _        int32
	ids              driver.DevicePtr
}

// sampling chooses tokens from the logits; where adjusted, by the kernels for steps of
// which some row needs them.
func (c *compiler) sampling(adjusted bool) ([]launch, error) {
	logits := c.forms(c.l.p.Logits)
	vocab := int(logits.cols)
	a := sampleArgs{
		logits: logits.f32, stride: logits.stride, vocab: logits.cols, params: c.step.params, masks: c.scratchAt + driver.DevicePtr(c.room.masks),
		maskWords: int32(c.room.maskWords), count: c.step.counts + countRows, scratch: c.scratchAt + driver.DevicePtr(c.room.sampling),
		scratchStride: int64(c.room.samplingRow), results: c.step.results, sampled: c.step.sampled, blocks: int32(samplingBlocks(vocab)),
		ids: c.step.ids,
	}
	surveys, chooses := "survey", "choose"
	if adjusted {
		surveys, chooses = "surveyAdjusted", "chooseAdjusted"
	}
	args := arguments(&a)
	survey, err := c.launch("sample", surveys, plan.Rows, args, 256, func(sh *shape) driver.Dim3 {
		return driver.Dim3{X: samplingBlocks(vocab), Y: sh.rows}
	})
	if err != nil {
		return nil, err
	}
	f, err := c.kernel("sample", chooses)
	if err != nil {
		return nil, err
	}
	choose := launch{name: "sample " + chooses, rows: plan.Rows, begin: func(s *driver.Stream, sh *shape) error {
		config := driver.LaunchConfig{Grid: driver.Dim3{X: 1, Y: sh.rows}, Block: driver.Dim3{X: 1024}, Programmatic: c.early}
		if c.hopper {
			config.Grid.X, config.Cluster = samplingCluster, driver.Dim3{X: samplingCluster}
		}
		return f.Launch(s, config, args)
	}}
	launches := []launch{survey, choose}
	for i := range launches {
		launches[i].sampling, launches[i].where, launches[i].moves = true, "choice of tokens", func(b *plan.Batch) int { return len(b.Rows) * 4 * vocab }
	}
	return launches, nil
}
