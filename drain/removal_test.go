// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package drain_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/belayproject/belay/drain"
)

// findings runs the preflight and gives "pod reason" for each.
func (c *planCase) findings() []string {
	var got []string
	for _, f := range drain.Preflight(c.Snapshot, c.policy, c.now) {
		got = append(got, fmt.Sprintf("%s %s", f.Name, f.Reason))
	}
	return got
}

func (c *planCase) addVolume(claim string, spec corev1.PersistentVolumeSpec) {
	if c.Claims == nil {
		c.Claims, c.Volumes = map[types.NamespacedName]*corev1.PersistentVolumeClaim{}, map[string]*corev1.PersistentVolume{}
	}
	pvc := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: claim}}
	pvc.Spec.VolumeName = "pv-" + claim
	c.Claims[types.NamespacedName{Namespace: "shop", Name: claim}] = pvc
	c.Volumes[pvc.Spec.VolumeName] = &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: pvc.Spec.VolumeName}, Spec: spec}
}

// onlyOn is a volume with an affinity of one term for each value.
func onlyOn(key string, op corev1.NodeSelectorOperator, values ...string) corev1.PersistentVolumeSpec {
	selector := &corev1.NodeSelector{}
	for _, v := range values {
		selector.NodeSelectorTerms = append(selector.NodeSelectorTerms, corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{
			{Key: "zone", Operator: corev1.NodeSelectorOpExists}, {Key: key, Operator: op, Values: strings.Split(v, ",")},
		}})
	}
	return corev1.PersistentVolumeSpec{NodeAffinity: &corev1.VolumeNodeAffinity{Required: selector}}
}

// A drain is put off by the pods of the node that would leave and are not ready, each by name (R-DR-05).
func TestUnreadyPodPutsADrainOff(t *testing.T) {
	c := newPlanCase(planPod("z", unready), planPod("a", inPhase(corev1.PodPending), unready), planPod("ready"), planPod("skipped", unready, labeled("drain.belay.dev/behavior", "Skip")),
		planPod("finished", unready, inPhase(corev1.PodSucceeded)), planPod("ending", unready, deletedAt(0)))
	if got := c.findings(); got != nil {
		t.Errorf("not asked for: got %q, want none", got)
	}
	c.policy.RequireHealthy = true
	if got, want := c.findings(), []string{"a PodUnhealthy", "z PodUnhealthy"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	for _, f := range drain.Preflight(c.Snapshot, c.policy, c.now) {
		if f.Node != "n1" || f.UID == "" || f.Message == "" {
			t.Errorf("got %+v, want the node, the pod's UID and a message", f)
		}
	}
	for _, p := range c.Nodes[0].Pods[:2] {
		p.Status.Conditions[0].Status = corev1.ConditionTrue
	}
	if got := c.findings(); got != nil {
		t.Errorf("all ready: got %q, want none", got)
	}
}

func removalCase() *planCase {
	c := newPlanCase(
		planPod("scratch", withEmptyDir("a", "")),
		planPod("host", withHostPath("/data", corev1.HostPathDirectory, false)),
		planPod("socket", withHostPath("/run/x.sock", corev1.HostPathSocket, false)),
		planPod("reader", withHostPath("/etc", corev1.HostPathUnset, true)),
		planPod("replica", withClaim("data")),
		planPod("member", labeled("db", "yes")),
		planPod("finished", withEmptyDir("a", ""), withClaim("data"), labeled("db", "yes"), inPhase(corev1.PodFailed)),
		planPod("ending", withEmptyDir("a", ""), withClaim("data"), deletedAt(0)),
		planPod("daemon", ownedBy("DaemonSet", "ds"), withEmptyDir("a", "")),
		planPod("static", ownedBy("Node", "n1"), withHostPath("/data", corev1.HostPathUnset, false), labeled("db", "yes")),
		planPod("tolerant", toleratingAll, withEmptyDir("a", "")),
		planPod("plain"),
	)
	c.addVolume("data", corev1.PersistentVolumeSpec{PersistentVolumeSource: corev1.PersistentVolumeSource{Local: &corev1.LocalVolumeSource{Path: "/mnt"}}})
	c.policy.Rules = []drain.Rule{{Name: "db", Quorum: true, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"db": "yes"}}}}
	c.policy.Removal = &drain.Removal{}
	return c
}

func withHostPath(path string, kind corev1.HostPathType, readOnly bool) podOption {
	return func(p *corev1.Pod) {
		p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: "host", VolumeSource: corev1.VolumeSource{
			HostPath: &corev1.HostPathVolumeSource{Path: path, Type: &kind}}})
		p.Spec.Containers = []corev1.Container{{VolumeMounts: []corev1.VolumeMount{{Name: "host", ReadOnly: readOnly}}}}
	}
}

// What the removal of a node would lose is named, pod by pod, and allowed kind by kind (R-DR-18).
func TestRemovalNamesWhatWouldBeLost(t *testing.T) {
	local := []string{"host LocalStorage", "scratch LocalStorage", "tolerant LocalStorage"}
	replicas := []string{"ending LastReplica", "replica LastReplica"}
	quorum := []string{"member QuorumMember", "static QuorumMember"}
	for name, tc := range map[string]struct {
		removal *drain.Removal
		want    []string
	}{
		"not a removal":      {nil, nil},
		"nothing is allowed": {&drain.Removal{}, slices.Concat(local, replicas, quorum)},
		"local data":         {&drain.Removal{AllowLocalData: true}, slices.Concat(replicas, quorum)},
		"replicas":           {&drain.Removal{AllowLastReplica: true}, slices.Concat(local, quorum)},
		"quorum":             {&drain.Removal{AllowQuorum: true}, slices.Concat(local, replicas)},
	} {
		t.Run(name, func(t *testing.T) {
			c := removalCase()
			c.policy.Removal = tc.removal
			if got := c.findings(); !slices.Equal(got, sorted(tc.want)) {
				t.Errorf("got %q, want %q", got, sorted(tc.want))
			}
		})
	}
}

// A rule allows the loss of data and not of a quorum; the pod's own label allows nothing here, and the policy's word for a reboot
// neither (R-DR-18).
func TestRuleAllowsLossInARemoval(t *testing.T) {
	c := removalCase()
	c.policy.LocalData = drain.EvictPods
	for _, p := range c.Nodes[0].Pods {
		p.Labels["drain.belay.dev/behavior"] = "Evict"
	}
	if got := len(c.findings()); got != 7 {
		t.Errorf("labels: got %d findings (%q), want all 7", got, c.findings())
	}
	c.policy.Rules = append(c.policy.Rules, drain.Rule{Behavior: drain.BehaviorEvict})
	if got, want := c.findings(), []string{"member QuorumMember", "static QuorumMember"}; !slices.Equal(got, want) {
		t.Errorf("a rule for all: got %q, want %q", got, want)
	}
}

// A pod that comes after the preflight is blocked for the same reason, and allowed by the same word (R-DR-18).
func TestPlanBlocksWhatThePreflightStopsFor(t *testing.T) {
	c := removalCase()
	c.want(t, "scratch", drain.Block, drain.LocalStorage)
	c.want(t, "host", drain.Block, drain.LocalStorage, `"/data"`)
	c.want(t, "replica", drain.Block, "LastReplica")
	c.want(t, "member", drain.Block, "QuorumMember")
	c.want(t, "plain", drain.Evict, "")
	c.policy.Removal = &drain.Removal{AllowLocalData: true, AllowLastReplica: true, AllowQuorum: true}
	for _, name := range []string{"scratch", "host", "replica", "member"} {
		c.want(t, name, drain.Evict, "")
	}
}

// A volume stays on the node when nothing else can mount it; what is not known may be lost (R-DR-18).
func TestVolumeThatDoesNotLeaveTheNode(t *testing.T) {
	in := corev1.NodeSelectorOpIn
	for name, tc := range map[string]struct {
		spec  corev1.PersistentVolumeSpec
		stays bool
	}{
		"local":                     {corev1.PersistentVolumeSpec{PersistentVolumeSource: corev1.PersistentVolumeSource{Local: &corev1.LocalVolumeSource{}}}, true},
		"a host path":               {corev1.PersistentVolumeSpec{PersistentVolumeSource: corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{}}}, true},
		"without affinity":          {corev1.PersistentVolumeSpec{}, false},
		"for the host name":         {onlyOn(corev1.LabelHostname, in, "host-n1"), true},
		"for the node by a driver":  {onlyOn("topology.driver.example/node", in, "n1"), true},
		"for another node":          {onlyOn(corev1.LabelHostname, in, "host-n2"), false},
		"for a zone":                {onlyOn("zone", in, "a"), false},
		"for two nodes":             {onlyOn(corev1.LabelHostname, in, "host-n1,host-n2"), false},
		"for two nodes, two terms":  {onlyOn(corev1.LabelHostname, in, "host-n1", "host-n2"), false},
		"for every node but this":   {onlyOn(corev1.LabelHostname, corev1.NodeSelectorOpNotIn, "host-n1"), false},
		"an affinity without terms": {onlyOn(corev1.LabelHostname, in), false},
	} {
		t.Run(name, func(t *testing.T) {
			c := newPlanCase(planPod("p", withClaim("data")))
			c.policy.Removal = &drain.Removal{}
			c.addVolume("data", tc.spec)
			if got := len(c.findings()) == 1; got != tc.stays {
				t.Errorf("got %q, want a finding: %t", c.findings(), tc.stays)
			}
		})
	}
	c := newPlanCase(planPod("p", withClaim("data")))
	c.policy.Removal = &drain.Removal{}
	c.want(t, "p", drain.Block, "LastReplica", `claim "data" is not known`)
	c.addVolume("data", corev1.PersistentVolumeSpec{})
	delete(c.Volumes, "pv-data")
	c.want(t, "p", drain.Block, "LastReplica", `volume "pv-data"`, "is not known")
	c.Claims[types.NamespacedName{Namespace: "shop", Name: "data"}].Spec.VolumeName = ""
	c.want(t, "p", drain.Evict, "")
}

// The volumes that are listed are those of pods that leave or have left, while they are attached.
func TestAttachedVolumesAreOfPodsThatLeave(t *testing.T) {
	c := newPlanCase(planPod("p", withClaim("data"), withClaim("shared")), planPod("stays", withClaim("kept"), labeled("drain.belay.dev/behavior", "Skip")), planPod("q", withClaim("shared"), withEphemeral("tmp")))
	for _, claim := range []string{"data", "shared", "kept", "q-tmp"} {
		c.addVolume(claim, corev1.PersistentVolumeSpec{})
	}
	attach := func(name string, attached bool) *storagev1.VolumeAttachment {
		a := &storagev1.VolumeAttachment{Status: storagev1.VolumeAttachmentStatus{Attached: attached}}
		if name != "" {
			a.Spec.Source.PersistentVolumeName = &name
		}
		return a
	}
	detaching := attach("pv-left", false)
	detaching.DeletionTimestamp = &metav1.Time{Time: planStart()}
	c.Nodes[0].Attachments = []*storagev1.VolumeAttachment{attach("pv-shared", true), attach("pv-kept", true), attach("pv-data", true), attach("pv-q-tmp", true),
		attach("pv-coming", false), attach("", true), detaching}
	if got := c.plan().Nodes[0].Attached; got != nil {
		t.Errorf("not asked for: got %v, want none", got)
	}
	c.policy.Volumes = true
	var got []string
	for _, a := range c.plan().Nodes[0].Attached {
		names := []string{a.Volume}
		for _, p := range a.Pods {
			names = append(names, p.Name)
		}
		got = append(got, strings.Join(names, " "))
	}
	if want := []string{"pv-data p", "pv-left", "pv-q-tmp q", "pv-shared p q"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func withEphemeral(name string) podOption {
	return func(p *corev1.Pod) {
		p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{}}},
			corev1.Volume{Name: "config"})
	}
}

// The preflight needs no clock and no drain that has begun.
func TestPreflightIsForNodesThatHaveNotBegun(t *testing.T) {
	c := removalCase()
	want := c.findings()
	c.Nodes[0].Started, c.now = time.Time{}, time.Time{}
	if got := c.findings(); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// R-DR-18: an annotation by which a pod gives its local data away does not give away the last replica of its claims.
func TestPresetAllowsNoLossOfTheLastReplica(t *testing.T) {
	c := removalCase()
	rules, err := drain.PresetRules("cluster-autoscaler.kubernetes.io/safe-to-evict")
	if err != nil {
		t.Fatal(err)
	}
	c.policy.Rules = append(c.policy.Rules, rules...)
	for _, p := range c.Nodes[0].Pods {
		p.Annotations = map[string]string{"cluster-autoscaler.kubernetes.io/safe-to-evict": "true"}
	}
	got := c.findings()
	if !slices.Contains(got, "replica LastReplica") || slices.Contains(got, "scratch LocalStorage") {
		t.Errorf("got %q, want the last replica named, and no local data", got)
	}
}
