// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package machineqemu_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/belayproject/belay/internal/testproc"
	"github.com/belayproject/belay/internal/tier"
	"github.com/belayproject/belay/machine/provider"
	"github.com/belayproject/belay/machine/v1alpha1"
)

// R-MA-05: editing the opaque part of a machine exchanges the kernel of a virtual machine, up and down. The Machine, its instance, its Node and the data on its
// disk stay; the Node reports what uname says, and another boot. In the middle of the first change the power is cut: when it is back, the change goes on.
func TestKernelUpAndDown(t *testing.T) {
	tier.System(t, tier.Qemu)
	t.Parallel()
	b := newBed(t)
	b.create("kernel", b.images.old, destroy)
	m, n := b.running("kernel", b.images.old)
	b.refused("kernel", m)
	token := provider.TokenOf(m.Spec.ProviderID)
	boots := map[string]bool{n.Status.NodeInfo.BootID: true}
	for _, kernel := range []string{b.images.young, b.images.old} {
		before := b.census()[token]
		b.setKernel("kernel", kernel)
		if kernel == b.images.young {
			b.cutPower("kernel", token, before)
		}
		after, node := b.running("kernel", kernel)
		if after.UID != m.UID || after.Status.Incarnation != 1 || after.Spec.ProviderID != m.Spec.ProviderID || node.UID != n.UID || len(b.listed()) != 1 {
			t.Errorf("R-MA-05: with kernel %s the machine is another one: %s, incarnation %d, %s, Node %s; instances %+v", kernel, after.UID,
				after.Status.Incarnation, after.Spec.ProviderID, node.UID, b.listed())
		}
		if node.Status.NodeInfo.MachineID != n.Status.NodeInfo.MachineID || node.Annotations[sentinelAnnotation] != token {
			t.Errorf("R-MA-05: with kernel %s the machine has another disk: machine ID %q with sentinel %q, it was %q with %q", kernel,
				node.Status.NodeInfo.MachineID, node.Annotations[sentinelAnnotation], n.Status.NodeInfo.MachineID, token)
		}
		boots[node.Status.NodeInfo.BootID] = true
	}
	if len(boots) != 3 {
		t.Errorf("R-MA-05: the Node has reported the boots %v, want 3", boots)
	}
	b.delete("kernel")
	b.nothingLeft(n)
}

// cutPower kills the virtual machine of an update that has just been switched on again.
func (b *bed) cutPower(name, token string, before []int) {
	b.t.Helper()
	var pid int
	must(b.t, testproc.Poll(within, func() error {
		now := b.census()[token]
		if len(now) != 1 || slices.Equal(now, before) {
			return errors.New("the machine was not switched off and on again")
		}
		pid = now[0]
		return nil
	}))
	b.until(name, "being updated", func(m *v1alpha1.Machine) bool { return m != nil && m.Status.Update != nil })
	must(b.t, syscall.Kill(pid, syscall.SIGKILL))
	must(b.t, testproc.Poll(within, func() error {
		if console := b.console(token); !strings.Contains(console, "belay: power cut") {
			return fmt.Errorf("the console knows of no power cut: %q", console)
		}
		return nil
	}))
}

// refused edits a machine to a kernel that is not there: nothing is touched, and the failure says why.
func (b *bed) refused(name string, m *v1alpha1.Machine) {
	b.t.Helper()
	token := provider.TokenOf(m.Spec.ProviderID)
	before := b.census()[token]
	b.setKernel(name, "0.0.1-none")
	after := b.until(name, "refused", func(m *v1alpha1.Machine) bool {
		return m != nil && m.Status.Failure != nil && m.Status.Failure.Reason == string(provider.InvalidConfig)
	})
	if now := b.census()[token]; !slices.Equal(now, before) || !strings.Contains(after.Status.Failure.Message, "0.0.1-none") {
		b.t.Errorf("R-MA-05: with a kernel that is not there the virtual machine is %v, it was %v, and the failure is %+v", now, before, after.Status.Failure)
	}
	if meta.IsStatusConditionTrue(after.Status.Conditions, v1alpha1.ConditionUpToDate) {
		b.t.Errorf("R-MA-05: a change was refused, and the machine says that it is up to date: %+v", after.Status.Conditions)
	}
}

// destroy are the fields of a machine whose disks go with it.
var destroy = map[string]any{"deletion": map[string]any{"diskPolicy": "Destroy"}}

// nothingLeft checks what is there after a machine was destroyed.
func (b *bed) nothingLeft(n *corev1.Node) {
	b.t.Helper()
	if all := b.listed(); len(all) > 0 {
		b.t.Errorf("R-MA-02: the provider still has %+v", all)
	}
	left, err := filepath.Glob(filepath.Join(b.order.Options.Root, "machines", "*"))
	if err != nil || len(left) > 0 || len(processes(b.order.Options.Root)) > 0 {
		b.t.Errorf("R-MA-02: there are still %q and the processes %v (%v)", left, processes(b.order.Options.Root), err)
	}
	if _, err := b.core.CoreV1().Nodes().Get(b.t.Context(), n.Name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		b.t.Errorf("R-MA-02: Node %q is still there: %v", n.Name, err)
	}
}

// killWhileCreating kills controllers at several places of a create, and starts another one each time.
func (b *bed) killWhileCreating(name string) {
	b.t.Helper()
	for _, is := range []func(m *v1alpha1.Machine) bool{
		func(m *v1alpha1.Machine) bool { return m.Status.Token != "" },
		func(*v1alpha1.Machine) bool { return len(processes(b.order.Options.Root)) > 0 },
		func(*v1alpha1.Machine) bool { return len(emulators(b.order.Options.Root)) > 0 },
	} {
		b.until(name, "so far", func(m *v1alpha1.Machine) bool { return m != nil && is(m) })
		b.control()
	}
}

func (b *bed) console(token string) string {
	b.t.Helper()
	text, err := os.ReadFile(filepath.Join(b.order.Options.Root, "machines", token, "console.log"))
	must(b.t, err)
	return string(text)
}

// R-MA-02 and R-MA-24: the controller is killed in the middle of a create, at several places, and goes on with the one virtual machine. What its guest has written on
// its disk survives the deletion of the machine, as Retain is the default; another machine that adopts the disk comes up as a Node with that; and Destroy removes it.
func TestDisksOutliveTheirMachine(t *testing.T) {
	tier.System(t, tier.Qemu)
	t.Parallel()
	b := newBed(t)
	b.create("disk", b.images.old, nil)
	b.killWhileCreating("disk")
	m, n := b.running("disk", b.images.old)
	token := provider.TokenOf(m.Spec.ProviderID)
	if m.Status.Incarnation != 1 || len(b.listed()) != 1 {
		t.Errorf("R-MA-02: after three controllers were killed there is incarnation %d, instances %+v", m.Status.Incarnation, b.listed())
	}
	if n.Annotations[sentinelAnnotation] != token || n.Annotations[bootsAnnotation] != "1" {
		t.Fatalf("a new disk has the sentinel %q after boot %q, want %q after 1", n.Annotations[sentinelAnnotation], n.Annotations[bootsAnnotation], token)
	}
	b.delete("disk")
	all := b.listed()
	if len(all) != 1 || all[0].State != provider.Retained || all[0].Token != token || len(all[0].Disks) != 1 || len(b.census()) > 0 {
		t.Fatalf("R-MA-24: after the machine was deleted there are %+v and the virtual machines %v, want its disk, retained", all, b.census())
	}
	b.create("heir", b.images.young, map[string]any{"adopt": token, "deletion": map[string]any{"diskPolicy": "Destroy"}})
	_, heir := b.running("heir", b.images.young)
	if heir.Annotations[sentinelAnnotation] != token || heir.Status.NodeInfo.MachineID != n.Status.NodeInfo.MachineID {
		t.Errorf("R-MA-24: the adopted disk has the sentinel %q and machine ID %q, want %q and %q", heir.Annotations[sentinelAnnotation],
			heir.Status.NodeInfo.MachineID, token, n.Status.NodeInfo.MachineID)
	}
	if boots, err := strconv.Atoi(heir.Annotations[bootsAnnotation]); err != nil || boots != 2 {
		t.Errorf("R-MA-24: the adopted disk has seen %q boots, want 2", heir.Annotations[bootsAnnotation])
	}
	b.delete("heir")
	b.nothingLeft(heir)
}
