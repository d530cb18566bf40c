// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/belayproject/belay/internal/backoff"
	"github.com/belayproject/belay/internal/testenv/kubeconfig"
)

// Annotations of the Node that say what is on the disk.
const (
	sentinelAnnotation = "guest.belay.dev/sentinel"
	bootsAnnotation    = "guest.belay.dev/boots"
)

const (
	renewEvery   = 5 * time.Second
	againAfter   = 250 * time.Millisecond
	callTime     = 10 * time.Second
	leaseSeconds = 40
)

// An agent registers the Node of this machine and keeps it Ready.
type agent struct {
	settings
	disk
	core   rest.Interface
	leases rest.Interface
	node   string
	info   corev1.NodeSystemInfo
}

func newAgent(s settings, d disk) (*agent, error) {
	a := &agent{settings: s, disk: d, node: s.Owner.Name}
	if len(d.kubeconfig) == 0 {
		return nil, errors.New("there is no kubeconfig: the machine was given no bootstrap Secret")
	}
	config, err := kubeconfig.Decode(d.kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("reading the kubeconfig: %w", err)
	}
	config.Host, config.Dial, config.Timeout = cmp.Or(s.Endpoint, config.Host), dial, callTime
	if a.core, err = client(config, "/api", corev1.SchemeGroupVersion); err != nil {
		return nil, err
	}
	if a.leases, err = client(config, "/apis", coordinationv1.SchemeGroupVersion); err != nil {
		return nil, err
	}
	a.info, err = systemInfo(s, d)
	return a, err
}

// client is one of a few kinds: the whole clientset would be twice the program.
func client(config *rest.Config, path string, group schema.GroupVersion) (rest.Interface, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, coordinationv1.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, err
		}
	}
	config = rest.CopyConfig(config)
	config.APIPath, config.GroupVersion = path, &group
	config.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	return rest.RESTClientFor(config)
}

// dial reaches a server on the host's loopback at the address that qemu gives the host.
func dial(ctx context.Context, network, address string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	if ip := net.ParseIP(host); host == "localhost" || ip.IsLoopback() {
		address = net.JoinHostPort(hostAddress, port)
	}
	return (&net.Dialer{Timeout: callTime}).DialContext(ctx, network, address)
}

func systemInfo(s settings, d disk) (corev1.NodeSystemInfo, error) {
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		return corev1.NodeSystemInfo{}, fmt.Errorf("uname: %w", err)
	}
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return corev1.NodeSystemInfo{
		MachineID: d.machineID, SystemUUID: d.machineID, BootID: strings.TrimSpace(string(boot)), KernelVersion: unix.ByteSliceToString(u.Release[:]),
		OSImage: "belay guest", OperatingSystem: "linux", Architecture: "amd64", KubeletVersion: cmp.Or(s.Versions.Kubelet, "none"),
	}, err
}

// run registers the Node, says so on the console, and renews the Lease until ctx ends. An API server that does not answer is asked again.
func (a *agent) run(ctx context.Context) error {
	for _, step := range []func(context.Context) error{a.register, a.report, a.renew} {
		for last := ""; ; {
			err := step(ctx)
			if err == nil {
				break
			}
			if err.Error() != last {
				fmt.Fprintln(os.Stderr, "belay: guest: again:", err)
				last = err.Error()
			}
			if !backoff.Sleep(ctx, againAfter) {
				return ctx.Err()
			}
		}
	}
	fmt.Printf("belay: joined: node %s, kernel %s, boot %s\n", a.node, a.info.KernelVersion, a.info.BootID)
	for {
		if !backoff.Sleep(ctx, renewEvery) {
			return ctx.Err()
		}
		for _, step := range []func(context.Context) error{a.report, a.renew} {
			if err := step(ctx); err != nil {
				fmt.Fprintln(os.Stderr, "belay: guest:", err)
			}
		}
	}
}

// register makes the Node, or finds it. One of another instance is in the way until its machine has removed it.
func (a *agent) register(ctx context.Context) error {
	annotations := map[string]string{sentinelAnnotation: a.sentinel, bootsAnnotation: strconv.Itoa(a.boots)}
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: a.node, Annotations: annotations, Labels: map[string]string{corev1.LabelHostname: a.node}},
		Spec:       corev1.NodeSpec{ProviderID: a.providerID},
	}
	err := a.core.Post().Resource("nodes").Body(node).Do(ctx).Error()
	if !apierrors.IsAlreadyExists(err) {
		return err
	}
	if err := a.core.Get().Resource("nodes").Name(a.node).Do(ctx).Into(node); err != nil {
		return err
	}
	if node.Spec.ProviderID != a.providerID {
		return fmt.Errorf("node %q has the provider ID %q, this is %q", a.node, node.Spec.ProviderID, a.providerID)
	}
	return a.patch(ctx, "", types.MergePatchType, map[string]any{"metadata": map[string]any{"annotations": annotations}})
}

// report says what runs here, and that it is Ready.
func (a *agent) report(ctx context.Context) error {
	now := metav1.Now()
	ready := corev1.NodeCondition{Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "GuestReady", Message: "boot " + a.info.BootID,
		LastHeartbeatTime: now, LastTransitionTime: now}
	return a.patch(ctx, "status", types.StrategicMergePatchType, map[string]any{
		"status": map[string]any{"nodeInfo": a.info, "conditions": []corev1.NodeCondition{ready}},
	})
}

func (a *agent) patch(ctx context.Context, subresource string, kind types.PatchType, patch any) error {
	data, err := json.Marshal(patch)
	if err != nil {
		return err
	}
	r := a.core.Patch(kind).Resource("nodes").Name(a.node)
	if subresource != "" {
		r = r.SubResource(subresource)
	}
	return r.Body(data).Do(ctx).Error()
}

// renew keeps the Lease of the Node.
func (a *agent) renew(ctx context.Context) error {
	seconds, now := int32(leaseSeconds), metav1.NowMicro()
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: a.node, Namespace: corev1.NamespaceNodeLease}}
	lease.Spec = coordinationv1.LeaseSpec{HolderIdentity: &a.node, LeaseDurationSeconds: &seconds, RenewTime: &now}
	err := a.leases.Post().Namespace(lease.Namespace).Resource("leases").Body(lease).Do(ctx).Error()
	if !apierrors.IsAlreadyExists(err) {
		return err
	}
	data, err := json.Marshal(map[string]any{"spec": lease.Spec})
	if err != nil {
		return err
	}
	return a.leases.Patch(types.MergePatchType).Namespace(lease.Namespace).Resource("leases").Name(a.node).Body(data).Do(ctx).Error()
}
