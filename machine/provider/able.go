// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package provider

// AbilitiesOf returns what a provider can do beyond the four methods: those of the interfaces that it implements. A provider with a method
// Abilities() Abilities, as decorators have, is asked instead: it may have less than its methods say.
func AbilitiesOf(p Provider) Abilities { return abilitiesOf(p) }

func abilitiesOf(p any) Abilities {
	if a, ok := p.(interface{ Abilities() Abilities }); ok {
		return a.Abilities()
	}
	var a Abilities
	a.Planner, _ = p.(Planner)
	a.Updater, _ = p.(Updater)
	a.Validator, _ = p.(Validator)
	a.Power, _ = p.(Power)
	a.Adopter, _ = p.(Adopter)
	a.Capacity, _ = p.(Capacity)
	a.Console, _ = p.(Console)
	a.Group, _ = p.(Group)
	return a
}
