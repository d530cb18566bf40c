// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

// Package kube installs the ValidatingAdmissionPolicy of identity/nodeauth, which lets each agent write only objects of
// its own node, and then the RBAC roles of the agents:
//
//	package main
//
//	import (
//		"context"
//		"log"
//		"time"
//
//		corev1 "k8s.io/api/core/v1"
//		"k8s.io/apimachinery/pkg/types"
//		"k8s.io/client-go/tools/clientcmd"
//
//		"github.com/belayproject/belay/identity/nodeauth"
//		"github.com/belayproject/belay/identity/nodeauth/kube"
//	)
//
//	func main() {
//		config, err := clientcmd.BuildConfigFromFlags("", clientcmd.RecommendedHomeFile)
//		if err != nil {
//			log.Fatal(err)
//		}
//		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
//		defer cancel()
//		err = kube.Install(ctx, config, nodeauth.Options{
//			Name:           "my-agent",
//			ServiceAccount: types.NamespacedName{Namespace: "my-system", Name: "agent"},
//			NodeConditions: []corev1.NodeConditionType{"example.com/Checked"},
//		})
//		if err != nil {
//			log.Fatal(err)
//		}
//	}
//
// # Promise
//
// Install creates the RBAC roles only after an API server has refused a dry run of a write because of the policy.
// An installation may be repeated. A policy of the same name with other contents is left as it is: [ErrOtherPolicy].
//
// # No promise
//
// Install deletes nothing. Other replicas of the API server may enforce the policy a moment later.
//
// # Concurrency
//
// Concurrent installations of one name give the result of one of them.
//
// # Crash behaviour
//
// An installation that was cut short leaves the policy without the roles, or with some of them: call Install again.
package kube
