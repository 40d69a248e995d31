//go:build race

package emulate

const raceDetector = true
