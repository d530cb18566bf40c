// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"testing"

	"github.com/belayproject/belay/internal/mutate"
)

// The tests catch detectors and bounds that are broken in any of these ways. R-RO-17, R-RO-18, R-RO-28
func TestDetectorMutants(t *testing.T) {
	mutate.Sample(t, []mutate.Mutant{
		{Name: "one failure too late", File: "detect_failures.go", Run: "TestFailureThresholdIsExact",
			Old: "t.failed >= r.limit", New: "t.failed > r.limit"},
		{Name: "a percentage is rounded down", File: "detect_failures.go", Run: "TestFailureThresholdIsExact",
			Old: "(n*nodes + 99) / 100", New: "n * nodes / 100"},
		{Name: "a percentage of no nodes", File: "detect_failures.go", Run: "TestFailureThresholdIsExact",
			Old: "limit: max(1, n), after: 1", New: "limit: n, after: 1"},
		{Name: "a percentage of the attempted is of all", File: "detect_failures.go", Run: "TestFailuresOfAttempted",
			Old: "case f.Of == OfAttempted:\n\t\treturn failuresRule{", New: "case false:\n\t\treturn failuresRule{"},
		{Name: "more than the share", File: "detect_failures.go", Run: "TestFailuresOfAttempted",
			Old: "100*t.failed >= r.percent*t.attempted", New: "100*t.failed > r.percent*t.attempted"},
		{Name: "judged too early", File: "detect_failures.go", Run: "TestFailuresOfAttempted",
			Old: "t.attempted >= r.after && ", New: ""},
		{Name: "a small fleet is never judged", File: "detect_failures.go", Run: "TestFailuresOfAttempted",
			Old: "max(1, min(f.After, nodes))", New: "max(1, f.After)"},
		{Name: "wrong settings let everything pass", File: "detect_failures.go", Run: "TestSettingsThatMakeNoSense",
			Old: "strict := failuresRule{limit: 1, after: 1}", New: "strict := failuresRule{limit: 1 << 30, after: 1}"},
		{Name: "a percentage of it is not said what", File: "detect_failures.go", Run: "TestSettingsThatMakeNoSense",
			Old: "case percent && f.Of != OfNodes && f.Of != OfAttempted:", New: "case percent && f.Of != OfNodes && f.Of != OfAttempted && f.Of != \"\":"},
		{Name: "the share that stops is off by one", File: "detect_failures.go", Run: "TestStopsAtIsTrue",
			Old: "+ success - 1) / success", New: ") / success"},
		{Name: "refusals are failures", File: "detect.go", Run: "TestResultsThatCount",
			Old: `case "", Succeeded, Refused, Deferred, Undone:`, New: `case "", Succeeded, Deferred, Undone:`},
		{Name: "what is undone is a failure", File: "detect.go", Run: "TestResultsThatCount",
			Old: `Refused, Deferred, Undone:`, New: `Refused, Deferred:`},
		{Name: "results that are not known pass", File: "detect.go", Run: "TestResultsThatCount",
			Old: "\t\treturn false\n\t}\n\treturn true\n", New: "\t\treturn false\n\t}\n\treturn r[0] != 'S' || r == Suspected\n"},
		{Name: "refusals are successes", File: "detect.go", Run: "TestDetectorsDoNotDependOnPasses|TestFailuresOfAttempted",
			Old: "failed || o.Result == Succeeded", New: "failed || o.Result != \"\""},
		{Name: "off means the default", File: "detect.go", Run: "TestOffIsExplicit",
			Old: "if detectors == nil {", New: "if len(detectors) == 0 {"},
		{Name: "nothing means off", File: "detect.go", Run: "TestOffIsExplicit",
			Old: "\t\treturn DefaultDetectors()\n", New: "\t\treturn nil\n"},
		{Name: "critical nodes may fail", File: "detect.go", Run: "TestCriticalNodeStops",
			Old: "if detectFailed(o.Result) && slices.Contains", New: "if o.Result == FailedBroken && slices.Contains"},
		{Name: "every node is critical", File: "detect.go", Run: "TestCriticalNodeStops",
			Old: "&& slices.Contains(c.Nodes, o.Node) {", New: "|| slices.Contains(c.Nodes, \"\") {"},
		{Name: "a good beginning is saved up", File: "detect_cusum.go", Run: "TestCUSUMWeighs",
			Old: "if sum <= 0 {", New: "if sum < -1e9 {"},
		{Name: "successes weigh nothing", File: "detect_cusum.go", Run: "TestDetectorTable/exact|TestCUSUMWeighs",
			Old: "sum -= float64(succeeded) * success", New: "_ = success"},
		{Name: "successes weigh too much", File: "detect_cusum.go", Run: "TestCUSUMWeighs",
			Old: "math.Log((1 - d.Good) / (1 - d.Bad))", New: "math.Log(1 / (1 - d.Bad))"},
		{Name: "another default", File: "detect_cusum.go", Run: "TestDetectorTable/figures",
			Old: "cusumLimit = 9.2", New: "cusumLimit = 9.3"},
		{Name: "what is not a number passes", File: "detect_cusum.go", Run: "TestSettingsThatMakeNoSense",
			Old: "!(d.Limit > 0)", New: "d.Limit <= 0"},
		{Name: "a limit that is just reached takes one more", File: "detect_cusum.go", Run: "TestStopsAtIsTrue",
			Old: "for n > 1 && (n-1)*failure >= limit {", New: "for false {"},
	})
}

func TestBoundMutants(t *testing.T) {
	mutate.Sample(t, []mutate.Mutant{
		{Name: "what is in flight is forgotten", File: "bound.go", Run: "TestBoundIsNeverExceeded",
			Old: "min(broken, stop.failures-1+inFlight)", New: "min(broken, stop.failures)"},
		{Name: "the last failure counts twice", File: "bound.go", Run: "TestBoundIsReached",
			Old: "min(broken, stop.failures-1+inFlight)", New: "min(broken, stop.failures+inFlight)"},
		{Name: "each stage begins without failures", File: "bound.go", Run: "TestBoundIsNeverExceeded",
			Old: "before+s.Nodes-succeeded, false", New: "s.Nodes-max(0, succeeded-before), false"},
		{Name: "only a fatal beginning", File: "bound.go", Run: "TestBoundIsNeverExceeded",
			Old: "succeeded < before+s.Nodes;", New: "succeeded < min(2, before+s.Nodes);"},
		{Name: "the beginning is not looked at", File: "bound.go", Run: "TestBoundIsNeverExceeded",
			Old: "Broken: min(s.Nodes, inFlight), Failures", New: "Broken: 0, Failures"},
		{Name: "a canary that fails is passed", File: "bound.go", Run: "TestBoundIsReached",
			Old: "for succeeded := 1; succeeded", New: "for succeeded := 0; succeeded"},
		{Name: "no cap means one at a time", File: "bound.go", Run: "TestBoundByHand",
			Old: "if s.InFlight < 1 {\n\t\treturn s.Nodes", New: "if s.InFlight < 1 {\n\t\treturn min(1, s.Nodes)"},
		{Name: "the last detector decides", File: "bound.go", Run: "TestBoundIsReached",
			Old: "(first.failures == 0 || n < first.failures)", New: "true"},
		{Name: "the limit is passed by one", File: "bound.go", Run: "TestBoundAgainstLimit",
			Old: "if b.Broken <= n {", New: "if b.Broken <= n+1 {"},
		{Name: "the limit is rounded up", File: "bound.go", Run: "TestBoundAgainstLimit",
			Old: "b.Nodes, false)", New: "b.Nodes, true)"},
		{Name: "the first cap of a key decides", File: "bound_flight.go", Run: "TestBoundInFlight",
			Old: "!ok || c.Max < m", New: "!ok || m < 0"},
		{Name: "nodes without a zone are free of all", File: "bound_flight.go", Run: "TestBoundInFlight",
			Old: "\t\tif !capped {\n\t\t\tfree += s.nodes\n", New: "\t\tif !capped {\n"},
		{Name: "every test has the whole chance", File: "detect_cause.go", Run: "TestNothingIsBlamedByChance",
			Old: "return causeChance / float64(shares)\n", New: "return causeChance\n"},
		{Name: "attributes that can tell nothing cost the others", File: "detect_cause.go", Run: "TestCauseIsFound",
			Old: "if best[shares] > causeChance/float64(shares) {", New: "if false {"},
		{Name: "more than the failures", File: "detect_cause.go", Run: "TestFisherTail",
			Old: "max(failedWith, with+failed-nodes)", New: "max(failedWith+1, with+failed-nodes)"},
		{Name: "lacking an attribute is nothing", File: "detect_cause.go", Run: "TestCauseText",
			Old: "k := key{attribute, value, !present}", New: "k := key{attribute, value, false}"},
	})
}
