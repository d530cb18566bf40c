// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"testing"

	"github.com/belayproject/belay/internal/mutate"
)

// The tests catch conversions and conditions that are broken in any of these ways.
func TestMutants(t *testing.T) {
	mutate.Sample(t, []mutate.Mutant{
		{Name: "secrets are mixed up", File: "machine_convert.go", Run: "TestMachineFieldsHaveTheirPlace",
			Old: "Bootstrap: s.Bootstrap.name(), Credentials: s.Credentials.name()", New: "Bootstrap: s.Credentials.name(), Credentials: s.Bootstrap.name()"},
		{Name: "the provider's part is written anew", File: "machine_convert.go", Run: "TestProviderConfigIsOpaque",
			Old: "c.Config = bytes.Clone(s.ProviderConfig.Raw)", New: "c.Config, _ = json.Marshal(s.ProviderConfig)"},
		{Name: "the provider's part is shared", File: "machine_convert.go", Run: "TestMachineSharesNothing",
			Old: "Raw: bytes.Clone(c.Config)", New: "Raw: c.Config"},
		{Name: "any JSON is a config", File: "machine_convert.go", Run: "TestMachineNamesTheField",
			Old: "new(map[string]json.RawMessage)", New: "new(any)"},
		{Name: "a source of another kind becomes none", File: "machine_convert.go", Run: "TestMachineNamesTheField",
			Old: "\t\td.DisallowUnknownFields() // a source that lost a part would name something else\n", New: ""},
		{Name: "decommissioning is forgotten", File: "machine_convert.go", Run: "TestMachineKeepsEverything",
			Old: "Adopt: c.Adopt, Decommission: c.Decommission,", New: "Adopt: c.Adopt,"},
		{Name: "keys are not looked at", File: "machine_convert.go", Run: "TestMachineNamesTheField",
			Old: `return c, checkNames("nodeMetadata", c.Node.Labels, c.Node.Annotations)`, New: `return c, checkNames("nodeMetadata", nil, nil)`},
		{Name: "any prefix of a label is one", File: "parts.go", Run: "TestMachineNamesTheField",
			Old: "validation.IsQualifiedName(k)", New: "validation.IsQualifiedName(strings.ToLower(k))"},
		{Name: "other finalizers are taken off", File: "parts.go", Run: "TestMachineKeepsWhatIsNotOurs",
			Old: "func(f string) bool { return f == Finalizer }", New: "func(string) bool { return true }"},
		{Name: "other owners are removed", File: "parts.go", Run: "TestMachineKeepsWhatIsNotOurs",
			Old: "if r.Controller == nil || !*r.Controller {", New: "if r.Controller == nil && r.Kind == \"\" {"},
		{Name: "an owner of another kind becomes a set", File: "parts.go", Run: "TestMachineKeepsWhatIsNotOurs",
			Old: "if ownerOf(o) == owner {", New: "if owner == (machine.Owner{}) {"},
		{Name: "a set belongs to a set", File: "set_convert.go", Run: "TestOwnersHaveTheirKind",
			Old: "setOwner(&s.ObjectMeta, c.Owner, MachineDeploymentKind)", New: "setOwner(&s.ObjectMeta, c.Owner, MachineSetKind)"},
		{Name: "times are those of this place", File: "parts.go", Run: "TestMachineKeepsEverything",
			Old: "return t.UTC()\n}\n\nfunc timeRef", New: "return t.In(time.FixedZone(\"x\", 60))\n}\n\nfunc timeRef"},
		{Name: "fractions of a second are kept until they are read", File: "parts.go", Run: "TestConditionTimes",
			Old: "t.UTC().Truncate(time.Second)", New: "t.UTC()"},
		{Name: "a retained instance is not to come back", File: "machine_status_convert.go", Run: "TestMachineKeepsEverything",
			Old: "Since: second(r.Since), Until: second(r.Until), Back: r.Back,", New: "Since: second(r.Since), Until: second(r.Until),"},
		{Name: "an end that has begun can be stopped", File: "machine_status_convert.go", Run: "TestMachineKeepsEverything",
			Old: "Begun: r.Begun, ", New: ""},
		{Name: "every failure is for the autoscaler", File: "machine_status_convert.go", Run: "TestFailureIsForTheAutoscaler",
			Old: "if s.Failure != nil && c.Phase == machine.PhaseFailed {", New: "if s.Failure != nil {"},
		{Name: "a text is cut within a character", File: "machine_status_convert.go", Run: "TestLongTextsAreCut",
			Old: "for limit > 0 && !utf8.RuneStart(text[limit]) {", New: "for limit > 0 && text[limit] == 0 {"},
		{Name: "bytes that are no text are stored", File: "machine_status_convert.go", Run: "TestLongTextsAreCut",
			Old: `text = strings.ToValidUTF8(text, "\uFFFD"); len(text) <= limit`, New: `len(text) <= limit`},
	})
}

// The same for conditions.
func TestMutantsOfConditions(t *testing.T) {
	mutate.Sample(t, []mutate.Mutant{
		{Name: "a Node that is not ready takes work", File: "conditions.go", Run: "TestConditions",
			Old: "case running && node != nil && !node.Ready:", New: "case running && node == nil && c.Failure != nil && c.Spec.Paused:"},
		{Name: "an unknown Node is ready", File: "conditions.go", Run: "TestConditions",
			Old: `c.Step.Name == machine.StepReady && c.Step.Blocker == "":`, New: `c.Step.Name == machine.StepReady:`},
		{Name: "a pause makes a machine unknown", File: "conditions.go", Run: "TestConditions",
			Old: ` && c.Step.Blocker != "" && !c.Spec.Paused:`, New: ` && c.Step.Blocker != "":`},
		{Name: "what is unsupported is shown as up to date", File: "conditions.go", Run: "TestConditions",
			Old: "\tcase failed:\n\t\tset(ConditionUpToDate", New: "\tcase false:\n\t\tset(ConditionUpToDate"},
		{Name: "what the provider refuses is shown as up to date", File: "conditions.go", Run: "TestConditions",
			Old: "case c.Digest != c.Spec.Digest():", New: "case c.Digest == \"\":"},
		{Name: "what is planned as unsupported is supported", File: "conditions.go", Run: "TestConditions",
			Old: "u.Plan.Method == provider.Unsupported:", New: "u.Plan.Method == \"\":"},
		{Name: "what is stuck makes progress", File: "conditions.go", Run: "TestConditions",
			Old: `|| c.Step.Blocker != ""` + "\n\tset(", New: "\n\tset("},
		{Name: "any text is a reason", File: "conditions.go", Run: "TestConditions",
			Old: "\tif isWord {", New: "\tif isWord || text != \"\" {"},
		{Name: "conditions change with each look", File: "conditions.go", Run: "TestConditionTimes",
			Old: "meta.SetStatusCondition(all, c)", New: "meta.RemoveStatusCondition(all, c.Type)\n\tmeta.SetStatusCondition(all, c)"},
		{Name: "the old status changes with the new one", File: "machine_status_convert.go", Run: "TestConditionTimes",
			Old: "m.Status.Conditions = slices.Clone(conditions)", New: "m.Status.Conditions = conditions"},
		{Name: "conditions speak of no generation", File: "conditions.go", Run: "TestConditions$",
			Old: "Message: message, ObservedGeneration: generation}, now)", New: "Message: message}, now)"},
	})
}

// The same for sets, deployments and health checks.
func TestMutantsOfGroups(t *testing.T) {
	mutate.Sample(t, []mutate.Mutant{
		{Name: "an empty selector selects everything", File: "group_convert.go", Run: "TestSelectors",
			Old: "!selector.Empty() && ", New: ""},
		{Name: "expressions are lost", File: "group_convert.go", Run: "TestGroupsInventNothing",
			Old: "MatchExpressions: g.Selector.MatchExpressions}", New: "}"},
		{Name: "one machine's own goes to all", File: "group_convert.go", Run: "TestGroupsRefuseWhatNoObjectHas",
			Old: `s.Adopt != "" || `, New: ""},
		{Name: "numbers wrap", File: "group_convert.go", Run: "TestGroupsRefuseWhatNoObjectHas",
			Old: "n < 0 || n > math.MaxInt32", New: "n < 0"},
		{Name: "an amount that can't be read is none", File: "group_convert.go", Run: "TestGroupsNameTheField",
			Old: "return a, fmt.Errorf(\"%s: %w\", field, err)", New: "return machine.Amount{}, nil"},
		{Name: "none is no amount", File: "group_convert.go", Run: "TestGroupsKeepEverything",
			Old: "v := intstr.Parse(a.String())", New: "v := intstr.FromInt32(int32(a.Value))"},
		{Name: "too many machines are ready", File: "group_convert.go", Run: "TestGroupConditions",
			Old: "s.there == s.wanted && s.ready", New: "s.ready"},
		{Name: "a deployment takes expressions", File: "deployment_convert.go", Run: "TestGroupsNameTheField",
			Old: "case len(s.Selector.MatchExpressions) > 0:", New: "case len(s.Selector.MatchExpressions) > 99:"},
		{Name: "a history of none is the default", File: "deployment_convert.go", Run: "TestHistoryLimit",
			Old: "c.History <= 0 {", New: "c.History < 0 {"},
		{Name: "surge and unavailable are mixed up", File: "deployment_convert.go", Run: "TestGroupFieldsHaveTheirPlace",
			Old: `c.Strategy.MaxSurge, err = amount("strategy.maxSurge", s.Strategy.MaxSurge)`,
			New: `c.Strategy.MaxSurge, err = amount("strategy.maxSurge", s.Strategy.MaxUnavailable)`},
		{Name: "a deployment with old machines is up to date", File: "deployment_convert.go", Run: "TestDeploymentIsUpToDate",
			Old: "s.Updated == s.Replicas && s.Updated", New: "s.Updated"},
		{Name: "the scale has no selector", File: "set_convert.go", Run: "TestScaleHasTheSelector",
			Old: "Selector: s.Spec.Selector.text(),", New: ""},
		{Name: "lineages end", File: "set_convert.go", Run: "TestGroupsKeepEverything",
			Old: "machine.Heir{Of: r.Heir.Of, Lineage: int(r.Heir.Lineage)}", New: "machine.Heir{Of: r.Heir.Of}"},
		{Name: "names are used again", File: "set_convert.go", Run: "TestGroupsKeepEverything",
			Old: "Serial: c.Status.Serial, ", New: ""},
		{Name: "a machine that recovers is not known to", File: "healthcheck_convert.go", Run: "TestGroupsKeepEverything",
			Old: "HealthySince: second(a.Healthy), ", New: ""},
		{Name: "attempts are in no namespace", File: "healthcheck_convert.go", Run: "TestGroupsKeepEverything",
			Old: "Key: machine.Key{Namespace: namespace, Name: a.Machine}", New: "Key: machine.Key{Name: a.Machine}"},
		{Name: "a check that is held is not", File: "healthcheck_convert.go", Run: "TestHealthCheckConditions",
			Old: `if s.Message != "" || c.Spec.Paused {`, New: `if s.Message != "" {`},
		{Name: "an invalid spec makes the object unhealthy", File: "conditions.go", Run: "TestGroupStatusIsStable",
			Old: "setter(&all, generation, now)(ConditionValid, false,", New: "setter(&all, generation, now)(ConditionHealthy, false,"},
		{Name: "an invalid spec changes the old status", File: "conditions.go", Run: "TestGroupStatusIsStable",
			Old: "all := slices.Clone(old)", New: "all := old"},
	})
}
