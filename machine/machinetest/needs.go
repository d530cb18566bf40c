// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package machinetest

import (
	"context"

	"github.com/belayproject/belay/machine/provider"
)

// A need is what a rule can't be checked without.
type need string

const (
	needGet       need = "Get"
	needList      need = "List"
	needPlanner   need = "Planner"
	needUpdater   need = "Updater"
	needValidator need = "Validator"
	needPower     need = "Power"
	needAdopter   need = "Adopter"
	needCapacity  need = "Capacity"
	needConsole   need = "Console"

	needOther    need = "OtherConfig"
	needUnknown  need = "UnknownField"
	needZones    need = "Zones"
	needRunning  need = "Running"
	needBoots    need = "Boots"
	needSentinel need = "WriteSentinel and ReadSentinel"
	needCrash    need = "Crash"
	needInject   need = "Inject"
	needMany     need = "Many"
	needMemory   need = "Forgets" // of tokens that were used up
)

// probe finds out what the provider and the harness don't have.
func (s *suite) probe(ctx context.Context, p provider.Provider) {
	s.can = provider.AbilitiesOf(p)
	ctx, cancel := context.WithTimeout(ctx, s.wait())
	defer cancel()
	_, err := p.Get(ctx, provider.Ref{Token: provider.Token(s.cluster("a"), s.run, 1)})
	s.providerHas(needGet, provider.ClassOf(err) != provider.NotSupported)
	_, err = p.List(ctx, provider.Scope{Cluster: s.cluster("a")})
	s.providerHas(needList, provider.ClassOf(err) != provider.NotSupported)
	s.providerHas(needPlanner, s.can.Planner != nil)
	s.providerHas(needUpdater, s.can.Updater != nil)
	s.providerHas(needValidator, s.can.Validator != nil)
	s.providerHas(needPower, s.can.Power != nil)
	s.providerHas(needAdopter, s.can.Adopter != nil)
	s.providerHas(needCapacity, s.can.Capacity != nil)
	s.providerHas(needConsole, s.can.Console != nil)
	s.providerHas("Group", s.can.Group != nil)
	s.harnessHas(needOther, s.h.OtherConfig != nil)
	s.harnessHas(needUnknown, s.unknownField() != nil)
	s.harnessHas(needZones, len(s.h.Zones) > 1)
	s.harnessHas(needRunning, s.h.Running != nil)
	s.harnessHas(needBoots, s.h.Boots != nil)
	s.harnessHas(needSentinel, s.h.WriteSentinel != nil && s.h.ReadSentinel != nil)
	s.harnessHas(needCrash, s.h.Crash != nil)
	s.harnessHas(needInject, s.h.Inject != nil)
	s.harnessHas(needMany, s.h.Many >= 0)
	if s.h.Forgets != "" {
		s.lacks[needMemory] = "the provider can't know tokens that were used up: " + s.h.Forgets
	}
}

func (s *suite) providerHas(n need, has bool) {
	if !has {
		s.lacks[n] = "the provider has no " + string(n)
		s.report.Lacks = append(s.report.Lacks, string(n))
	}
}

func (s *suite) harnessHas(n need, has bool) {
	if !has {
		s.lacks[n] = "the harness has no " + string(n)
	}
}

func (s *suite) has(n need) bool { return s.lacks[n] == "" }
