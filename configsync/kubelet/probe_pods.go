// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
)

// Bounds of a baseline of pods.
const (
	mostPods    = 200
	mostDaemons = 60
)

// fewestBlurred is how many pods must be lost before those count that any restart of a kubelet can end. On a node with
// one or two pods they would be half of all.
const fewestBlurred = 3

// Kinds of the controllers of pods that are treated apart.
const (
	kindDaemonSet = "DaemonSet"
	kindNode      = "Node" // of a static pod: the kubelet makes its copy at the API server anew
)

// podsProbe asks whether the pods that ran before the config was adopted still run.
type podsProbe struct {
	view *nodeView

	mu       sync.Mutex
	baseline string             // that lost and past are about
	lost     map[string]lostPod // by UID: their owner may have deleted them since
	past     map[string]bool    // by UID: lost in an earlier run of the config, or under the fallback
}

// podsBaseline is which pods ran before. All lists are sorted and bounded; the rest is not looked at.
type podsBaseline struct {
	Form       int               `json:"form"`
	DaemonSets []string          `json:"daemonSets,omitempty"` // namespace/name of those with a ready pod on the node
	Static     []string          `json:"static,omitempty"`     // namespace/name of ready static pods
	Pods       map[string]string `json:"pods,omitempty"`       // namespace/name of the other ready pods, by UID
}

// Name implements configsync.Probe.
func (*podsProbe) Name() string { return "pods" }

// NeedsServer says that the API server is asked.
func (*podsProbe) NeedsServer() bool { return true }

// Check implements configsync.Probe: without a baseline nothing can be missing.
func (*podsProbe) Check(context.Context) error { return nil }

// TakeBaseline names the pods that are ready.
func (p *podsProbe) TakeBaseline(ctx context.Context) ([]byte, error) {
	pods, err := p.view.readPods(ctx)
	if err != nil {
		return nil, err
	}
	daemons, static, others := map[string]bool{}, map[string]bool{}, map[string]string{}
	for i := range pods {
		pod := &pods[i]
		switch {
		case !pod.isCounted():
		case pod.owner.kind == kindDaemonSet:
			daemons[pod.owner.name] = true
		case pod.owner.kind == kindNode:
			static[pod.name] = true
		default:
			others[pod.uid] = pod.name
		}
	}
	b := podsBaseline{Form: baselineForm, DaemonSets: takeFirst(maps.Keys(daemons), mostDaemons),
		Static: takeFirst(maps.Keys(static), mostDaemons)}
	b.Pods = map[string]string{}
	for _, uid := range takeFirst(maps.Keys(others), mostPods) {
		b.Pods[uid] = others[uid]
	}
	return json.Marshal(b)
}

func takeFirst(keys func(func(string) bool), most int) []string {
	all := slices.Sorted(keys)
	return all[:min(most, len(all))]
}

// Compare says which of the pods of the baseline do not run. Under a fallback a pod that has failed does not count:
// it never runs again.
func (p *podsProbe) Compare(ctx context.Context, baseline []byte, fallback bool) error {
	var b podsBaseline
	if err := json.Unmarshal(baseline, &b); err != nil || b.Form != baselineForm {
		return p.Check(ctx)
	}
	pods, err := p.view.readPods(ctx)
	if err != nil {
		return err
	}
	missing := slices.Concat(daemonsMissing(b.DaemonSets, pods, fallback), staticMissing(b.Static, pods))
	missing = append(missing, p.podsMissing(string(baseline), b.Pods, pods, fallback)...)
	if len(missing) == 0 {
		return nil
	}
	more := ""
	if n := len(missing) - 1; n > 0 {
		more = fmt.Sprintf(" (and %d more)", n)
	}
	return newFailure("of %d pods and DaemonSets that were ready before, %d are not: %s%s",
		len(b.DaemonSets)+len(b.Static)+len(b.Pods), len(missing), missing[0], more)
}

// daemonsMissing names the DaemonSets that have pods on the node and none that is ready. One without any pod there
// was deleted, or does not select the node any more.
func daemonsMissing(before []string, pods []podState, fallback bool) (missing []string) {
	for _, name := range before {
		there, ready := 0, false
		for i := range pods {
			pod := &pods[i]
			if pod.owner != (podOwner{kindDaemonSet, name}) || pod.deleted || fallback && pod.isFinished() {
				continue
			}
			there++
			ready = ready || pod.isCounted()
		}
		if there > 0 && !ready {
			missing = append(missing, fmt.Sprintf("DaemonSet %q had a ready pod on the node, and has none", name))
		}
	}
	return missing
}

// staticMissing says which static pods are not ready. One that is gone counts: only its node takes it away.
func staticMissing(before []string, pods []podState) (missing []string) {
	for _, name := range before {
		i := slices.IndexFunc(pods, func(pod podState) bool { return pod.name == name && pod.owner.kind == kindNode })
		switch {
		case i < 0:
			missing = append(missing, fmt.Sprintf("static pod %q is gone", name))
		case !pods[i].isCounted():
			missing = append(missing, fmt.Sprintf("static pod %q is not ready", name))
		}
	}
	return missing
}

// A lostPod is one that the kubelet has ended.
type lostPod struct {
	text string
	blur bool // any restart of a kubelet can end a pod so
}

// podsMissing says which pods with a UID of the baseline do not run. Of those that were lost it names the ones that
// this run of the config has lost: what was lost by the end of a fallback does not come back with the config.
func (p *podsProbe) podsMissing(baseline string, before map[string]string, pods []podState,
	fallback bool) (missing []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.baseline != baseline || p.lost == nil {
		p.baseline, p.lost, p.past = baseline, map[string]lostPod{}, map[string]bool{}
	}
	for i := range pods {
		pod := &pods[i]
		switch _, was := before[pod.uid]; {
		case !was || pod.deleted || pod.phase == corev1.PodSucceeded:
		case pod.phase == corev1.PodFailed:
			if !endedByItself(pod) && !p.past[pod.uid] {
				p.lost[pod.uid] = lostPod{fmt.Sprintf("pod %q has failed: %s: %s", pod.name, pod.reason, clipMessage(pod.message)),
					endedByAnyRestart(pod)}
			}
		case !pod.ready:
			missing = append(missing, fmt.Sprintf("pod %q is not ready", pod.name))
		}
	}
	if fallback {
		for uid := range p.lost {
			p.past[uid] = true
		}
		clear(p.lost)
		return missing
	}
	return append(p.describeLost(len(before)), missing...)
}

// describeLost says which pods were lost that count, of so many that there were before.
func (p *podsProbe) describeLost(before int) (lost []string) {
	many := len(p.lost) >= fewestBlurred && 2*len(p.lost) >= before
	for _, l := range p.lost {
		if many || !l.blur {
			lost = append(lost, l.text)
		}
	}
	slices.Sort(lost)
	return lost
}

// endedByItself reports whether a pod that has failed has done so by its own program, deadline or limit, or with its
// machine: no kubelet has refused it, or evicted it for the sake of the node.
func endedByItself(pod *podState) bool {
	switch pod.reason {
	case "", "DeadlineExceeded", "Terminated", "NodeShutdown", "Shutdown", "Completed", "Preempting":
		return true
	case "Evicted":
		return exceedsOwnLimit(pod.message)
	}
	return false
}

// exceedsOwnLimit reports whether a kubelet says of a pod that it has evicted that the pod has filled more disk than
// its own limits allow. Any config evicts such a pod.
func exceedsOwnLimit(message string) bool {
	return strings.HasPrefix(message, "Pod ephemeral local storage usage exceeds the total limit") ||
		strings.HasPrefix(message, "Usage of EmptyDir volume ") ||
		strings.HasPrefix(message, "Container ") && strings.Contains(message, " exceeded its local ephemeral storage limit ")
}

// endedByAnyRestart reports whether a kubelet ends such a pod also where its config is the same as before: when a
// device, a label or a CPU of the node has changed meanwhile.
func endedByAnyRestart(pod *podState) bool {
	return pod.reason == "UnexpectedAdmissionError" || pod.reason == "NodeAffinity"
}
