// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"context"
	"time"
)

// A Provider makes and deletes instances. What it promises is in the documentation of the package.
type Provider interface {
	// Create makes the instance of a token, or returns it if it is there. It does not wait for it to run: State may be Pending.
	Create(ctx context.Context, r CreateRequest) (Instance, error)
	// Get returns one instance. [NotFound] is authoritative.
	Get(ctx context.Context, ref Ref) (Instance, error)
	// List returns every instance of a cluster that holds anything, in any order, retained ones included.
	List(ctx context.Context, s Scope) ([]Instance, error)
	// Delete stops an instance and gives back what it holds, by the mode. It begins or continues that, and says how far it is.
	Delete(ctx context.Context, r DeleteRequest) (Progress, error)
}

// A Ref names an instance. Token is always set; ProviderID as soon as it is known. A provider may use either.
type Ref struct {
	Token      string `json:"token"`
	ProviderID string `json:"providerID,omitempty"`
}

// A Scope is whose instances to list.
type Scope struct {
	// Cluster is the identity of the cluster, as in [Owner].
	Cluster string `json:"cluster"`
}

// An Owner is for whom an instance was made. The provider keeps it on the instance, in tags, labels or a file.
type Owner struct {
	Cluster     string `json:"cluster"`
	Namespace   string `json:"namespace,omitempty"`
	Name        string `json:"name"`
	UID         string `json:"uid"`
	Incarnation int64  `json:"incarnation"`
}

// Desired is what a machine should be: the part of a request that can change while it lives.
type Desired struct {
	// Config is the provider's own part, JSON, byte for byte as the user wrote it.
	Config []byte `json:"config,omitempty"`
	// Versions are the parts that every provider understands.
	Versions Versions `json:"versions"`
	// Roles are what the machine is for, as "worker", "control-plane" or "etcd".
	Roles []string `json:"roles,omitempty"`
	// Node is how the Node should register.
	Node NodeSettings `json:"node"`
}

// NodeSettings are what the kubelet of a machine is to be started with.
type NodeSettings struct {
	Labels      map[string]string `json:"labels,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
	Taints      []Taint           `json:"taints,omitempty"`
}

// A Taint is one of a Node. Effect is "NoSchedule", "PreferNoSchedule" or "NoExecute".
type Taint struct {
	Key    string `json:"key"`
	Value  string `json:"value,omitempty"`
	Effect string `json:"effect"`
}

// Versions of what runs on a machine. Empty means that the provider chooses.
type Versions struct {
	// Kubelet is a version like "v1.36.3".
	Kubelet string  `json:"kubelet,omitempty"`
	Runtime Runtime `json:"runtime,omitzero"`
	// Other are packages by name, as "kernel".
	Other map[string]string `json:"other,omitempty"`
}

// A Runtime is a container runtime, as {"containerd", "2.1.4"}.
type Runtime struct {
	Name    string `json:"name,omitempty"`
	Version string `json:"version,omitempty"`
}

// A CreateRequest asks for one instance.
type CreateRequest struct {
	// Token is the identity of the instance: lower case letters, digits and dashes, at most 63 bytes. It was stored before the call.
	Token string `json:"token"`
	Owner Owner  `json:"owner"`
	// Digest is that of Desired, by [Desired.Digest]. The same token with another digest is [Conflict].
	Digest  string  `json:"digest"`
	Desired Desired `json:"desired"`
	Join    Join    `json:"join"`
}

// Join is how an instance gets into its cluster. It is no part of the digest: it differs from call to call.
type Join struct {
	// Endpoint is the address of the API server, as "https://host:port".
	Endpoint string `json:"endpoint,omitempty"`
	// Bootstrap is the content of the Secret that the machine names. It is secret.
	Bootstrap map[string][]byte `json:"bootstrap,omitempty"`
	// Credentials are the content of the provider's Secret, where the machine names one. They are secret.
	Credentials map[string][]byte `json:"credentials,omitempty"`
}

// A Mode says what becomes of disks.
type Mode string

// Modes of [Provider.Delete]. The zero value is Retain.
const (
	// Retain stops the instance and keeps its disks, from which Adopt can make it again.
	Retain Mode = "Retain"
	// Destroy leaves nothing. A retained instance can be destroyed later.
	Destroy Mode = "Destroy"
)

// A DeleteRequest asks for the end of one instance. It names no config: a broken one must not keep anything alive.
type DeleteRequest struct {
	Ref  Ref  `json:"ref"`
	Mode Mode `json:"mode"`
	// Until is when a retained instance may be destroyed, for people and for [Instance.Until]; zero is never. The provider keeps it and does
	// nothing by itself.
	Until time.Time `json:"until,omitzero"`
	// Cluster keeps a caller from deleting what belongs to another cluster: an instance with another one is [NotFound].
	Cluster string `json:"cluster"`
	// Credentials are as in [Join].
	Credentials map[string][]byte `json:"credentials,omitempty"`
}

// Progress is how far something is that takes longer than a call.
type Progress struct {
	// Done means that there is nothing left to do. After a Delete the instance is stopped then.
	Done bool `json:"done"`
	// Stopped means that the instance runs no more, and can't come back by itself: its Node may be removed.
	Stopped bool `json:"stopped,omitempty"`
	// Message says what it waits for.
	Message string `json:"message,omitempty"`
	// Retained are the disks that were kept.
	Retained []Disk `json:"retained,omitempty"`
	// AfterSeconds is when it makes sense to ask again; 0 leaves that to the caller. The controller asks then, and not before, but for another desire; and
	// after five minutes at most.
	AfterSeconds int64 `json:"afterSeconds,omitempty"`
}
