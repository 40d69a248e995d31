package arch

// falconMultipliers are the constants of Falcon-H1's maximal update parametrization.
type falconMultipliers struct {
	states [5]float64 // of the gate, the values, the inputs, the outputs and the steps of the states
}
