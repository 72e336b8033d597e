"""Design draft of the format, which no release wrote: conversion of graph modules with weights from and to schema 1."""
