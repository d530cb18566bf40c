// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/belayproject/belay/machine"
)

// cluster is a list of machines by what they are: "c" control plane with a member, "e" etcd alone, "w" worker; upper case is not running. All are
// entered for decommission if they end.
func cluster(kinds string) (machines []machine.Machine) {
	for i, k := range kinds {
		m := machine.Machine{Key: key(fmt.Sprint(strings.ToLower(string(k)), i)), UID: fmt.Sprint(i)}
		m.Phase = machine.PhaseRunning
		if k < 'a' {
			m.Phase = machine.PhaseFailed
		}
		m.Spec.Roles = map[rune][]string{'c': {"control-plane"}, 'e': {"etcd"}, 'w': {"worker"}, 's': {"control-plane", "etcd", "worker"}}[rune(strings.ToLower(string(k))[0])]
		machines = append(machines, m)
	}
	return machines
}

// members are of the machines of that name: "c0", "c1!" for one that is unhealthy, "c2?" for a learner, "-" for one whose machine is not known.
func members(text string) (all []machine.Member) {
	for name := range strings.FieldsSeq(text) {
		m := machine.Member{Name: name, Healthy: !strings.HasSuffix(name, "!"), Learner: strings.HasSuffix(name, "?")}
		if name != "-" {
			m.Machine = key(strings.TrimRight(name, "!?"))
		}
		all = append(all, m)
	}
	return all
}

func gateView(kinds, ending, in string) machine.GateView {
	v := machine.GateView{Machines: cluster(kinds), Members: members(in), MembersKnown: true}
	for name := range strings.FieldsSeq(ending) {
		v.Ending = append(v.Ending, key(name))
		for i := range v.Machines {
			if v.Machines[i].Name == name {
				v.Machines[i].Spec.Decommission = true
			}
		}
	}
	return v
}

// findings in words: "Quorum=Warn".
func findings(list []machine.Finding) string {
	var all []string
	for _, f := range list {
		all = append(all, string(f.Gate)+"="+string(f.Severity))
	}
	return strings.Join(all, " ")
}

// A gateCase is one of the situations of TestGates.
type gateCase struct {
	name, kinds, ending, members string
	change                       func(v *machine.GateView)
	want, message                string
}

func gateCases() []gateCase {
	return []gateCase{
		{name: "nothing", kinds: "cw"},
		{name: "worker of several", kinds: "cww", ending: "w1", members: "c0"},
		{name: "last worker", kinds: "cw", ending: "w1", members: "c0", want: "Role=Block", message: `last with role "worker"`},
		{name: "last worker that runs", kinds: "cwW", ending: "w1", members: "c0", want: "Role=Warn"},
		{name: "5 to 4", kinds: "cccccw", ending: "c0", members: "c0 c1 c2 c3 c4"},
		{name: "4 to 3", kinds: "ccccw", ending: "c0", members: "c0 c1 c2 c3"},
		{name: "3 to 2", kinds: "cccw", ending: "c0", members: "c0 c1 c2", want: "Quorum=Warn", message: "2 of 3 members would remain, and not one"},
		{name: "2 to 1", kinds: "ccw", ending: "c0", members: "c0 c1", want: "ControlPlane=Warn Quorum=Warn", message: "nothing to stand in"},
		{name: "1 to 0", kinds: "cw", ending: "c0", members: "c0", want: "ControlPlane=Block Quorum=Block", message: "no machine of the control plane would remain"},
		{name: "3 to 2, another unhealthy", kinds: "cccw", ending: "c0", members: "c0 c1! c2", want: "Quorum=Block", message: `member "c1!" is unhealthy: mend it`},
		{name: "3 to 2, itself unhealthy", kinds: "cccw", ending: "c0", members: "c0! c1 c2", want: "Quorum=Warn"},
		{name: "2 to 1, itself unhealthy", kinds: "ccw", ending: "c0", members: "c0! c1", want: "ControlPlane=Warn Quorum=Block", message: "can't decide"},
		{name: "2 to 1, the other unhealthy", kinds: "ccw", ending: "c0", members: "c0 c1!", want: "ControlPlane=Warn Quorum=Block", message: "can't decide"},
		{name: "5 to 4, another unhealthy", kinds: "cccccw", ending: "c0", members: "c0 c1! c2 c3 c4", want: "Quorum=Block", message: "mend it"},
		{name: "5 to 3, two at once", kinds: "cccccw", ending: "c0 c1", members: "c0 c1 c2 c3 c4", want: "Quorum=Warn", message: "one at a time"},
		{name: "5 to 3, one of them unhealthy", kinds: "cccccw", ending: "c0 c1", members: "c0! c1 c2 c3 c4", want: "Quorum=Warn"},
		{name: "5 to 2, only unhealthy ones", kinds: "cccccw", ending: "c0 c1 c2", members: "c0! c1! c2! c3 c4", want: "Quorum=Block", message: "can't decide"},
		{name: "4 with two unhealthy ones to go", kinds: "ccccw", ending: "c0 c1", members: "c0! c1 c2 c3!", want: "Quorum=Block"},
		{name: "learner", kinds: "cccw", ending: "c2", members: "c0 c1 c2?"},
		{name: "learners don't count", kinds: "cccw", ending: "c0", members: "c0 c1 c2?", want: "Quorum=Warn", message: "1 of 2 members"},
	}
}

func gateCasesMore() []gateCase {
	return []gateCase{
		{name: "left already, as when its end was interrupted", kinds: "cccw", ending: "c0", members: "c1 c2"},
		{name: "left already, one of two", kinds: "cccw", ending: "c0", members: "c1 c2!"},
		{name: "member on no machine that is known", kinds: "cccw", ending: "c0", members: "c1 c2 -", want: "Quorum=Block", message: "runs on no machine"},
		{name: "worker beside such a member", kinds: "ccww", ending: "w2", members: "c0 c1 -"},
		{name: "members can't be asked", kinds: "cccw", ending: "c0", change: func(v *machine.GateView) { v.MembersKnown = false }, want: "Quorum=Block", message: "could not be asked"},
		{name: "members can't be asked, of a worker", kinds: "cccww", ending: "w3", change: func(v *machine.GateView) { v.MembersKnown = false }},
		{name: "members can't be asked, with machines of their own", kinds: "ccceee", ending: "c0", change: func(v *machine.GateView) { v.MembersKnown = false }},
		{name: "etcd alone", kinds: "ceeew", ending: "e1", members: "e1 e2 e3", want: "Quorum=Warn"},
		{name: "last etcd", kinds: "cew", ending: "e1", members: "e1", want: "Quorum=Block Role=Block"},
		{name: "single node", kinds: "s", ending: "s0", members: "s0", want: "ControlPlane=Block Quorum=Block Role=Block Role=Block"},
		{name: "the others don't run", kinds: "cCCw", ending: "c0", members: "c0", want: "ControlPlane=Block Quorum=Block", message: "none is running"},
		{name: "another ends too", kinds: "ccw", ending: "c0", members: "c0 c1 x", want: "ControlPlane=Block Quorum=Warn",
			change: func(v *machine.GateView) { v.Machines[1].Deleted = noon }},
		{name: "not entered", kinds: "ccccw", ending: "c0", members: "c0 c1 c2 c3", want: "Decommission=Block", message: "set spec.decommission first",
			change: func(v *machine.GateView) { v.Machines[0].Spec.Decommission = false }},
		{name: "worker needs no entry", kinds: "cww", ending: "w1", change: func(v *machine.GateView) { v.Machines[1].Spec.Decommission = false }},
		{name: "not there", kinds: "cww", ending: "x", want: "Unknown=Block", message: "no such machine"},
		{name: "local data", kinds: "cww", ending: "w1", want: "LocalData=Block", message: `"pv" of shop/db`, change: func(v *machine.GateView) {
			v.Volumes = []machine.LocalVolume{{Name: "pv", Machine: key("w1"), Claim: "shop/db"}, {Name: "other", Machine: key("w2"), Claim: "shop/db"}}
		}},
		{name: "local data of nobody", kinds: "cww", ending: "w1", want: "LocalData=Warn", change: func(v *machine.GateView) {
			v.Volumes = []machine.LocalVolume{{Name: "pv", Machine: key("w1")}}
		}},
		{name: "one pod", kinds: "cww", ending: "w1", want: "Replica=Warn", message: "Deployment shop/cart has one pod", change: func(v *machine.GateView) {
			v.Workloads = []machine.Workload{{Name: "Deployment shop/cart", Ready: 1, Ending: 1}}
		}},
		{name: "all pods", kinds: "cww", ending: "w1", want: "Replica=Block", message: "all of them run there", change: func(v *machine.GateView) {
			v.Workloads = []machine.Workload{{Name: "x", Ready: 3, Ending: 3}}
		}},
		{name: "some pods", kinds: "cww", ending: "w1", change: func(v *machine.GateView) {
			v.Workloads = []machine.Workload{{Name: "x", Ready: 3, Ending: 2}, {Name: "y"}}
		}},
		{name: "as a warning", kinds: "cww", ending: "w1", want: "LocalData=Warn", change: func(v *machine.GateView) {
			v.Volumes = []machine.LocalVolume{{Name: "pv", Machine: key("w1"), Claim: "shop/db"}}
			v.As = map[machine.Gate]machine.Severity{machine.GateLocalData: machine.Warn}
		}},
		{name: "as a block", kinds: "cccw", ending: "c0", members: "c0 c1 c2", want: "Quorum=Block", change: func(v *machine.GateView) {
			v.As = map[machine.Gate]machine.Severity{machine.GateQuorum: machine.Block}
		}},
		{name: "ignored", kinds: "cw", ending: "w1", members: "c0", change: func(v *machine.GateView) {
			v.As = map[machine.Gate]machine.Severity{machine.GateRole: machine.Ignore}
		}},
	}
}

// TestGates: what is accepted, warned of and refused before an end. R-MA-20, R-MA-25.
func TestGates(t *testing.T) {
	for _, c := range slices.Concat(gateCases(), gateCasesMore()) {
		t.Run(c.name, func(t *testing.T) {
			v := gateView(c.kinds, c.ending, c.members)
			if c.change != nil {
				c.change(&v)
			}
			got := machine.CheckEnd(v)
			if findings(got) != c.want {
				t.Errorf("%v, want %q", got, c.want)
			}
			if c.message != "" && !slices.ContainsFunc(got, func(f machine.Finding) bool { return strings.Contains(f.String(), c.message) }) {
				t.Errorf("%v, want %q", got, c.message)
			}
			if blocks := strings.Contains(c.want, "Block"); (machine.Blocker(got) != "") != blocks {
				t.Errorf("blocker %q, want one: %v", machine.Blocker(got), blocks)
			}
		})
	}
}

// TestEveryEndOfAQuorum: of up to six voters in any health, an end that is not refused leaves enough that are healthy, before and after, and the
// same is found whatever is listed first. R-MA-25.
func TestEveryEndOfAQuorum(t *testing.T) {
	accepted := 0
	for n := 1; n <= 6; n++ {
		for healthy := range 1 << n {
			for ending := 1; ending < 1<<n; ending++ {
				var in, out []string
				after, afterHealthy, before := 0, 0, 0
				for i := range n {
					name := fmt.Sprint("c", i)
					good := healthy>>i&1 == 1
					if ending>>i&1 == 1 {
						out = append(out, name)
					} else {
						after++
						afterHealthy += map[bool]int{true: 1}[good]
					}
					before += map[bool]int{true: 1}[good]
					in = append(in, name+map[bool]string{false: "!"}[good])
				}
				v := gateView(strings.Repeat("c", n)+"w", strings.Join(out, " "), strings.Join(in, " "))
				v.As = map[machine.Gate]machine.Severity{machine.GateControlPlane: machine.Ignore}
				got := machine.CheckEnd(v)
				if machine.Blocker(got) == "" {
					accepted++
					if before < n/2+1 || after == 0 || afterHealthy < after/2+1 {
						t.Fatalf("of %v, %v may end: %v", in, out, got)
					}
				}
				slices.Reverse(v.Members)
				slices.Reverse(v.Machines)
				slices.Reverse(v.Ending)
				if again := machine.CheckEnd(v); findings(again) != findings(got) {
					t.Fatalf("of %v, end of %v: %v, and in another order %v", in, out, got, again)
				}
			}
		}
	}
	if accepted < 200 {
		t.Errorf("%d ends were accepted: that is too few to show anything", accepted)
	}
}

// TestRoles: what a machine can be for. R-MA-20.
func TestRoles(t *testing.T) {
	for text, want := range map[string]string{
		"worker": "", "control-plane": "", "etcd": "", "control-plane etcd worker": "", "worker ingress": "", "worker a-0": "",
		"": "at least one of", "ingress": "at least one of", "worker worker": "twice", "master": `it is "control-plane" here`, "worker node": `it is "worker" here`,
		"worker minion": `it is "worker" here`, "worker Ingress": "lower case", "worker -a": "lower case", "worker a-": "lower case", "worker a.b": "lower case",
		"worker " + strings.Repeat("a", 64): "1 to 63", "worker ä": "lower case",
	} {
		err := machine.ValidateRoles(strings.Fields(text))
		if (err != nil) != (want != "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("roles %q: %v, want %q", text, err, want)
		}
	}
	if err := machine.ValidateRoles([]string{"worker", ""}); err == nil {
		t.Error("an empty role is accepted")
	}
	for _, r := range []string{"control-plane", "etcd"} {
		if !machine.Protected([]string{"worker", r}) {
			t.Errorf("role %q is not protected", r)
		}
	}
	if machine.Protected([]string{"worker", "ingress"}) {
		t.Error("a worker is protected")
	}
}

// TestSkew: a kubelet is never newer than its control plane, and at most three minor versions older. R-MA-13.
func TestSkew(t *testing.T) {
	for _, c := range []struct{ plane, kubelet, want string }{
		{"v1.36.3", "v1.36.3", ""}, {"v1.36.3", "v1.36.9", ""}, {"v1.36.3", "v1.33.0", ""}, {"v1.36.3-gke.100", "v1.36.3+k3s1", ""}, {"v1.37.0-rc.1", "v1.37.0", ""},
		{"v1.36.3", "v1.37.0", "is newer than the control plane, which has v1.36.3: bring that to v1.37 first"},
		{"v1.36.3", "v1.37.0-alpha.1", "is newer"}, {"v1.9.0", "v1.10.0", "is newer"}, {"v1.36.3", "v1.32.9", "4 minor versions older"}, {"v1.10.0", "v1.9.0", ""},
		{"v1.36.3", "v2.36.3", "different major"}, {"v2.0.0", "v1.36.3", "different major"}, {"", "v1.36.3", ""}, {"v1.36.3", "", ""},
		{"1.36.3", "v1.36.3", "control plane: version"}, {"v1.36.3", "1.36.3", "kubelet: version"}, {"v1.36.3", "v1.36", "kubelet: version"},
		{"v1.36.3", "v1.36.3.4", "kubelet"}, {"v1.36.3", "v1.036.3", "no number"}, {"v1.36.3", "v1.-6.3", "kubelet"}, {"v1.36.3", "v1.x.3", "no number"},
		{"v1.36.3", "v1.36.3-", "kubelet"}, {"v1.36.3", "v1.36.3+", "kubelet"}, {"v1.36.3", "v1.99999999999999999999.3", "no number"}, {"v1.36.3", "latest", "kubelet"},
	} {
		if got := machine.Skew(c.plane, c.kubelet); (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("control plane %q, kubelet %q: %q, want %q", c.plane, c.kubelet, got, c.want)
		}
	}
}

// FuzzSkew: nothing that is no version passes, and two that pass are within three minor versions.
func FuzzSkew(f *testing.F) {
	for _, s := range []string{"v1.36.3", "v1.36", "v1.36.3-rc.1", "1.2.3", "v1..3", "v1.2.3-+"} {
		f.Add(s, "v1.36.3")
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		if a == "" || b == "" {
			return
		}
		if machine.Skew(a, b) != "" {
			return
		}
		var x, y [3]int
		_, errA := fmt.Sscanf(a, "v%d.%d.%d", &x[0], &x[1], &x[2])
		_, errB := fmt.Sscanf(b, "v%d.%d.%d", &y[0], &y[1], &y[2])
		if errA != nil || errB != nil || x[0] != y[0] || y[1] > x[1] || x[1]-y[1] > 3 {
			t.Errorf("Skew(%q, %q) is empty", a, b)
		}
	})
}
