// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"testing"

	"github.com/belayproject/belay/internal/mutate"
)

// TestMutantsAreCaught shows that the suite would notice. Those that need a real server are few, as each starts one.
func TestMutantsAreCaught(t *testing.T) {
	mutate.Sample(t, []mutate.Mutant{
		{
			Name: "directories of the node look unused", File: "transform.go", Old: "if len(mounts) > 0 {", New: "if false {",
			Run: "TestTransformLeavesThePlanAsItIs",
		},
		{
			Name: "the object that came is changed", File: "transform.go", Old: "\tmeta := unannotated(o.ObjectMeta)\n", New: "\to.Annotations = nil\n\tmeta := unannotated(o.ObjectMeta)\n",
			Run: "TestTransformDropsTheRest",
		},
		{
			Name: "the node that a pod left is not told", File: "watchers.go", Old: "UpdateFunc: func(old, obj any) { tell(old, obj) }",
			New: "UpdateFunc: func(_, obj any) { tell(obj) }", Run: "TestChangesNameWhatHasChanged",
		},
		{
			Name: "what isn't watched doesn't exist", File: "cache.go", Old: "\tdefault:\n\t\treturn c\n", New: "\tdefault:\n\t\treturn struct {\n\t\t\t*Cache\n\t\t\tvolumes\n\t\t}{c, volumes{c}}\n",
			Run: "TestViewHasNoMoreThanIsWatched",
		},
		{
			Name: "a request is repeated", File: "client.go", Old: `request.MaxRetries(0).Body(body).Do(ctx).Error()`, New: `request.Body(body).Do(ctx).Error()`,
			Run: "TestOverloadedServerIsAskedOnce",
		},
		{
			Name: "one page is enough", File: "client.go", Old: `options.Continue == ""`, New: "true", Run: "TestPodsAreReadWhole",
		},
		{
			Name: "an eviction by name", File: "client.go", Old: "\toptions.Preconditions = &metav1.Preconditions{UID: &pod.UID}\n", New: "", Run: "TestOnlyTheMeantPodIsTouched",
		},
		{
			Name: "the agent asks for the cluster's pods", File: "factory.go", Old: `only("spec.nodeName", o.Node)`, New: `only("spec.nodeName", "")`,
			Run: "TestAgentSeesItsNodeAlone",
		},
		{
			Name: "a living kubelet is overruled", File: "lease.go", Old: "ok && !last.Equal(found)", New: "ok && last.Equal(time.Time{})", Run: "TestLivingKubeletIsLeftAlone|TestKubeletComesInBetween",
		},
		{
			Name: "a clock that is behind turns time back", File: "lease.go", Old: "!next.After(found)", New: "next.IsZero()", Run: "TestRenewTimeGrows",
		},
		{
			Name: "an old answer counts", File: "responder.go", Old: "RequestAnnotation: string(value), AnswerAnnotation: nil}", New: "RequestAnnotation: string(value)}",
			Run: "TestOldAnswersCountForNothing/another_maintenance",
		},
		{
			Name: "a request is made again over the answer", File: "responder.go", Old: "r.annotate(ctx, ref, pod.ResourceVersion,", New: `r.annotate(ctx, ref, "",`,
			Run: "TestLaggingCacheRemovesNoAnswer",
		},
		{
			Name: "a watch that is refused is not noticed", File: "informer.go", Old: "i.failure, i.at, i.version = err, time.Now(), version", New: "_ = version", Run: "TestRightsAreEnoughAndNeeded/watch_pods",
		},
	})
}
