package lower

import (
	"github.com/realizar/realizar/internal/cuda/device"
	"github.com/realizar/realizar/internal/cuda/driver"
	"github.com/realizar/realizar/internal/cuda/weights"
	"github.com/realizar/realizar/internal/plan"
)

// RowParams are the sampling parameters of a row; see kernels/sample.cu.
type RowParams struct {
	Temperature, TopP, MinP float32
	TopK                    int32
	Seed, Position          uint64
	Choice, Want            uint32
	Mask, Last              int32
	Typical, Repetition     float32
	Frequency, Presence     float32
	Adjusted, _             int32
	Adjustments             driver.DevicePtr
}

// RowResult is the result of a row.
type RowResult struct {
	Token, Status  int32
	LogProbability float32
	_              uint32
}

// The status values of a row.
const (
	RowNotFinite = 1 + iota
	RowEmptyMask
	RowNoLogit
)

// Sizes of the sampling kernels' scratch memory; see Scratch in kernels/sample.cu.
const (
	samplingFixed       = 2*2048*8 + 1024*8 + 32*4
	samplingPerBlock    = 32
	samplingPerSegment  = 16
	samplingSegment     = 128
	samplingBlockTokens = 1024
	samplingMaxBlocks   = 128
	samplingCluster     = 8
)

// samplingBlocks returns the number of blocks that process a row's logits.
func samplingBlocks(vocab int) int {
	return min(samplingMaxBlocks, (vocab+samplingBlockTokens-1)/samplingBlockTokens)
}

// samplingBytes returns the scratch memory for sampling a row, in bytes.
func samplingBytes(vocab int) int {
	return weights.Align(samplingFixed + samplingPerBlock*samplingBlocks(vocab) + samplingPerSegment*((vocab+samplingSegment-1)/samplingSegment))
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

// Sampling returns the launches that sample tokens from the logits of steps with that
// [plan.Batch.Head]. If adjusted is true, they are the kernels for steps with rows that need
// adjustments.
func (c *Compiler) Sampling(head, adjusted bool) ([]Launch, error) {
	_, _, output := c.Layout.p.Outputs(head)
	logits := c.forms(output)
	vocab := int(logits.Cols)
	a := sampleArgs{
		logits: logits.F32, stride: logits.Stride, vocab: logits.Cols, params: c.Step.params, masks: c.ScratchAt + driver.DevicePtr(c.Room.Masks),
		maskWords: int32(c.Room.MaskWords), count: c.Step.counts + countRows, scratch: c.ScratchAt + driver.DevicePtr(c.Room.sampling),
		scratchStride: int64(c.Room.samplingRow), results: c.Step.results, sampled: c.Step.sampled, blocks: int32(samplingBlocks(vocab)),
		ids: c.Step.ids,
	}
	surveys, chooses := "survey", "choose"
	if adjusted {
		surveys, chooses = "surveyAdjusted", "chooseAdjusted"
	}
	args := device.Arguments(&a)
	survey, err := c.launch("sample", surveys, plan.Rows, args, 256, func(sh *Shape) driver.Dim3 {
		return driver.Dim3{X: samplingBlocks(vocab), Y: sh.Rows}
	})
	if err != nil {
		return nil, err
	}
	f, err := c.Kernel("sample", chooses)
	if err != nil {
		return nil, err
	}
	choose := Launch{Name: "sample " + chooses, rows: plan.Rows, begin: func(s *driver.Stream, sh *Shape) error {
		config := driver.LaunchConfig{Grid: driver.Dim3{X: 1, Y: sh.Rows}, Block: driver.Dim3{X: 1024}}
		if c.Hopper {
			config.Grid.X, config.Cluster = samplingCluster, driver.Dim3{X: samplingCluster}
		}
		return c.queue(f, s, config, args)
	}}
	launches := []Launch{survey, choose}
	for i := range launches {
		launches[i].Sampling, launches[i].where, launches[i].Moves = true, "choice of tokens", func(b *plan.Batch) int { return len(b.Rows) * 4 * vocab }
	}
	return launches, nil
}
