"""Trees in terms that all languages have in common: loops, branches, calls, assignments, ...

Many node kinds say the same: ``method_invocation`` in Java, ``invocation_expression`` in C# and
``call`` in Python are calls. ``to_common`` gives each node the common kind from one table, leaves
out what says little about the work (types, imports, modifiers, punctuation), and lets the children
of wrappers such as ``block`` or ``parenthesized_expression`` move up.
"""

from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from treecaps.hashing import hash_64
from treecaps.syntax.names import is_name
from treecaps.syntax.node_hashes import Hashes
from treecaps.syntax.tree import Ints, Tree

_COMMON = {
    "function": """
        function_definition function_declaration function_item function_expression arrow_function
        generator_function generator_function_declaration method_declaration method_definition
        constructor_declaration compact_constructor_declaration destructor_declaration
        operator_declaration local_function_statement secondary_constructor init_declaration
        deinit_declaration method singleton_method lambda lambda_expression lambda_literal
        anonymous_function anonymous_function_creation_expression anonymous_method_expression
        closure_expression func_literal block_argument do_block macro_definition
        preproc_function_def""",
    "class": """
        class_declaration class_definition class_specifier class struct_specifier struct_item
        struct_declaration struct_type interface_declaration interface_type enum_declaration
        enum_item enum_specifier record_declaration object_declaration trait_item
        trait_declaration protocol_declaration impl_item union_specifier""",
    "loop": """
        for_statement while_statement do_statement for_in_statement enhanced_for_statement
        foreach_statement for_range_loop for_expression while_expression loop_expression
        repeat_while_statement do_while_statement while until for while_modifier until_modifier
        for_in_clause""",
    "if": """
        if_statement if_expression if unless if_modifier unless_modifier elif_clause else_if_clause
        elsif conditional_expression ternary_expression conditional guard_statement if_clause
        switch_statement switch_expression expression_switch_statement type_switch_statement
        match_statement match_expression when_expression case case_statement when switch_section
        switch_block_statement_group switch_rule switch_case expression_case case_clause
        match_arm when_entry switch_entry default_case switch_default match_conditional_expression
        match_default_expression switch_expression_arm default_statement""",
    "call": """
        call_expression method_invocation invocation_expression call function_call_expression
        member_call_expression scoped_call_expression nullsafe_member_call_expression
        object_creation_expression new_expression implicit_object_creation_expression
        macro_invocation explicit_constructor_invocation print_statement echo_statement
        print_intrinsic constructor_expression constructor_invocation struct_expression
        composite_literal type_conversion_expression""",
    "index": """
        subscript_expression subscript array_access element_access_expression index_expression
        indexing_expression element_reference slice_expression element_binding_expression""",
    "assign": """
        assignment_expression assignment assignment_statement augmented_assignment
        augmented_assignment_expression compound_assignment_expr operator_assignment
        variable_declarator init_declarator short_var_declaration let_declaration var_spec
        const_spec property_declaration update_expression postfix_unary_expression
        inc_statement dec_statement named_expression property_element static_item const_item
        reference_assignment_expression default_parameter assignment_pattern""",
    "operator": """
        binary_expression binary_operator binary comparison_operator boolean_operator
        comparison_expression equality_expression additive_expression multiplicative_expression
        conjunction_expression disjunction_expression infix_expression bitwise_operation
        unary_expression unary_operator unary not_operator prefix_unary_expression
        prefix_expression unary_op_expression nil_coalescing_expression elvis_expression
        instanceof_expression is_expression check_expression is_pattern_expression in_expression
        range_expression range pointer_expression""",
    "return": """
        return_statement return_expression return control_transfer_statement yield_statement
        yield yield_expression""",
    "throw": "throw_statement throw_expression raise_statement",
    "try": "try_statement try_with_resources_statement try_block begin rescue",
    "catch": "catch_clause except_clause catch_block",
    "number": """
        number number_literal integer integer_literal int_literal decimal_integer_literal
        hex_integer_literal octal_integer_literal binary_integer_literal float float_literal
        decimal_floating_point_literal real_literal long_literal unsigned_literal hex_literal
        bin_literal""",
    "string": """
        string string_literal interpreted_string_literal raw_string_literal template_string
        line_string_literal multi_line_string_literal encapsed_string verbatim_string_literal
        interpolated_string_expression char_literal character_literal rune_literal heredoc
        concatenated_string user_defined_literal regex bare_string""",
    "truth": "true false boolean_literal boolean",
    "nothing": "null none nil null_literal nil_literal undefined",
    "list": """
        list array tuple set initializer_list array_initializer initializer_expression
        array_literal array_expression tuple_expression dictionary object dictionary_literal hash
        array_creation_expression string_array implicit_array_creation_expression
        list_comprehension generator_expression set_comprehension dictionary_comprehension
        literal_value collection_literal list_literal array_pattern""",
}
"""Common kinds, and the kinds of the grammars that they stand for."""

_WRAPPERS = """
    program module translation_unit source_file compilation_unit block compound_statement
    statement_block statement_list statements declaration_list body_statement class_body
    interface_body enum_body constructor_body field_declaration_list function_body block_body
    control_structure_body do then else else_clause finally_clause finally_block
    expression_statement declaration local_variable_declaration local_declaration_statement
    lexical_declaration variable_declaration field_declaration var_declaration const_declaration
    public_field_definition type_declaration constant_declaration multi_variable_declaration
    labeled_statement empty_statement pass_statement parenthesized_expression
    parenthesized_statements expression_list pattern_list tuple_pattern
    left_assignment_list right_assignment_list directly_assignable_expression condition_clause
    argument_list arguments argument value_arguments value_argument call_suffix
    constructor_suffix subscript_argument_list bracketed_argument_list keyword_argument
    token_tree annotated_lambda navigation_suffix parameter_list parameters parameter
    parameter_declaration formal_parameters formal_parameter required_parameter
    optional_parameter optional_parameter_declaration typed_parameter typed_default_parameter
    simple_parameter spread_parameter method_parameters block_parameters lambda_parameters
    closure_parameters function_value_parameters class_parameter class_parameters
    catch_formal_parameter catch_declaration implicit_parameter variadic_parameter
    function_declarator pointer_declarator array_declarator reference_declarator
    parenthesized_declarator structured_binding_declarator variadic_declarator
    pointer_type_declarator init_statement for_clause range_clause switch_block switch_body
    match_block switch_label switch_pattern match_pattern constant_pattern case_pattern
    pattern value_binding_pattern reference_pattern mut_pattern let_condition
    variable_name scoped_identifier qualified_identifier qualified_name dotted_name
    cast_expression type_cast_expression as_expression as_pattern type_assertion
    type_assertion_expression non_null_expression postfix_expression reference_expression
    await_expression checked_expression sizeof_expression comma_expression sequence_expression
    arrow_expression_clause bracketed_parameter_list accessor_list accessor_declaration
    namespace_declaration namespace_definition file_scoped_namespace_declaration mod_item
    template_declaration decorated_definition export_statement literal_element keyed_element
    pair field_initializer_list field_initializer shorthand_field_initializer dimensions_expr
    array_rank_specifier spread_element list_splat interpolation template_substitution
    interpolated_expression computed_property class_heritage unsafe_block using_statement
    lock_statement with_statement with_clause with_item compound_literal_expression
    generic_function template_function generic_name break_statement continue_statement
    break_expression continue_expression slice type_spec try_expression preproc_ifdef preproc_if
    preproc_else text_interpolation array_element_initializer
    field_expression field_access member_expression member_access_expression
    selector_expression attribute navigation_expression scope_resolution method_reference
    class_constant_access_expression conditional_access_expression
    nullsafe_member_access_expression"""
"""Kinds whose children move up to their parents."""

_LEFT_OUT = """
    comment line_comment block_comment multiline_comment import_declaration import_statement
    import_from_statement future_import_statement import import_header import_list using_directive
    using_declaration use_declaration namespace_use_declaration package_clause package_declaration
    package_header preproc_include preproc_call preproc_pragma preproc_region preproc_endregion
    alias_declaration type_definition type_alias_declaration type_alias type_item
    modifier modifiers visibility_modifier accessibility_modifier access_specifier
    storage_class_specifier type_qualifier mutable_specifier mutation_modifier function_modifiers
    parameter_modifier parameter_modifiers ownership_modifier explicit_function_specifier
    type_identifier primitive_type predefined_type integral_type floating_point_type boolean_type
    void_type array_type generic_type template_type sized_type_specifier type_annotation type
    type_descriptor user_type optional_type nullable_type pointer_type reference_type slice_type
    map_type channel_type function_type tuple_type qualified_type union_type literal_type
    object_type parenthesized_type implicit_type placeholder_type_specifier auto decltype
    dependent_type scoped_type_identifier abstract_pointer_declarator
    abstract_function_declarator abstract_array_declarator type_arguments type_argument_list
    template_argument_list type_parameters type_parameter_list template_parameter_list
    type_parameter type_parameter_declaration type_parameter_constraints_clause type_projection
    trait_bounds where_clause dimensions throws superclass super_interfaces base_list
    base_class_clause extends_interfaces delegation_specifiers annotation marker_annotation
    attribute_list attribute_item attribute_specifier decorator lifetime trailing_return_type
    lambda_capture_specifier namespace_identifier package_identifier this self super base
    this_expression self_expression self_parameter value_argument_label php_tag php_end_tag
    text global_statement nonlocal_statement string_content string_fragment string_start
    string_end escape_sequence string_literal_content character_literal_content line_str_text
    interpreted_string_literal_content interpolation_brace interpolation_start
    interpolation_quote string_literal_encoding format_specifier bang optional_chain character
    hash_bang_line shebang"""
"""Kinds that are left out with all below them."""

_PLAIN = """== != < <= + - * / % ** & | ^ ~ << >> and or ! += -= *= /= %= &= |= ^= <<= >>= in
    instanceof .. ?? ?:"""
_SIGNS = {
    **{sign: sign for sign in _PLAIN.split()},
    # A comparison reads the same from both sides.
    ">": "<",
    ">=": "<=",
    "!==": "!=",
    "===": "==",
    "is": "==",
    "is not": "!=",
    "&&": "and",
    "||": "or",
    "not": "!",
    "++": "+=",
    "--": "-=",
    "//": "/",
    "//=": "/=",
    ">>>": ">>",
    ">>>=": ">>=",
    "..=": "..",
    "..<": "..",
    "...": "..",
    "until": "..",
}
"""The signs of operators, and what they are taken for."""
_WITH_SIGN = frozenset(("operator", "assign"))
"""Kinds that are called by their sign, if they have one."""
_KEEP, _WRAP, _LEAVE_OUT, _SIGN = range(4)
WORK = frozenset(
    ("call", "catch", "function", "if", "index", "loop", "operator", "throw", "try")
) | frozenset(_SIGNS.values())
"""Common kinds of nodes that compute something, or decide what is computed."""


@dataclass(frozen=True, eq=False)
class CommonTree:
    """A tree of m nodes in common kinds, in pre-order.

    Args:
        kind: ``[m]``, hashes of common kinds, the same in all languages.
        parent: ``[m]``, -1 for the root.
        node: ``[m]``, which node of the original tree each is.
    """

    kind: Hashes
    parent: Ints
    node: Ints

    def __len__(self) -> int:
        return len(self.kind)


@cache
def common_kind(name: str) -> np.uint64:
    """Return the hash of a common kind."""
    return np.uint64(hash_64(name.encode()))


@cache
def _table() -> dict[str, tuple[int, str]]:
    """Return for each kind in the lists what is done with it, and the common kind."""
    lists = [(_KEEP, kind, words) for kind, words in _COMMON.items()]
    lists += [(_WRAP, "", _WRAPPERS), (_LEAVE_OUT, "", _LEFT_OUT)]
    table = {word: (act, kind) for act, kind, words in lists for word in words.split()}
    table |= {f'"{word}"': (_KEEP, word) for word in ("break", "continue")}
    table |= {"break": (_KEEP, "break"), "next": (_KEEP, "continue")}
    return table | {f'"{sign}"': (_SIGN, common) for sign, common in _SIGNS.items()}


def _look_up(kind: str) -> tuple[int, str]:
    found = _table().get(kind)
    if found:
        return found
    if kind.startswith('"') or not kind:
        return _LEAVE_OUT, ""
    if kind.endswith(("_modifier", "_modifiers", "_type")):
        return _LEAVE_OUT, ""
    if kind == "ERROR":
        return _WRAP, ""
    return _KEEP, "name" if is_name(kind) else kind


@cache
def _of_grammar(kinds: tuple[str, ...]) -> tuple[NDArray[np.int8], Hashes, NDArray[np.bool_]]:
    """Return of each kind of a grammar what is done, its common kind, and if a sign names it."""
    found = [_look_up(kind) for kind in kinds]
    return (
        np.array([act for act, _ in found], np.int8),
        np.array([common_kind(kind) for _, kind in found], np.uint64),
        np.array([kind in _WITH_SIGN for _, kind in found], bool),
    )


def to_common(tree: Tree) -> CommonTree:
    """Return a tree in common kinds; docstrings are left out too."""
    acts, kinds, with_sign = _of_grammar(tree.kinds)
    act, kind, parent = acts[tree.kind], kinds[tree.kind], tree.parent.copy()
    act[remarks(tree)] = _LEAVE_OUT
    if act[0] != _KEEP:
        act[0], kind[0] = _KEEP, common_kind("program")
    parent[0] = 0
    signs = np.flatnonzero(act == _SIGN)
    signs = signs[with_sign[tree.kind[parent[signs]]]]
    kind[parent[signs]] = kind[signs]
    kept = (act == _KEEP) & ~below((act == _LEAVE_OUT) | (act == _SIGN), parent)
    # What is declared without a value is a name.
    count = np.bincount(_nearest(parent, kept)[kept], minlength=len(kept))
    kept[1:] &= (kind[1:] != common_kind("assign")) | (count[1:] != 1)
    node = np.flatnonzero(kept)
    up = (np.cumsum(kept) - 1)[_nearest(parent, kept)[node]]
    up[0] = -1
    return CommonTree(kind[node], up.astype(np.int32), node.astype(np.int32))


def remarks(tree: Tree) -> NDArray[np.bool_]:
    """Return of each node whether it is as good as a comment: a docstring, or C#'s ``#region``."""
    strings = np.flatnonzero(are_kind(tree.kinds, "string")[tree.kind])
    parents = tree.parent[strings[strings > 0]]
    found = are_kind(tree.kinds, "preproc_region", "preproc_endregion")[tree.kind]
    statement = are_kind(tree.kinds, "expression_statement")
    found[parents[statement[tree.kind[parents]]]] = True
    return found


@cache
def are_kind(kinds: tuple[str, ...], *names: str) -> NDArray[np.bool_]:
    """Return which kinds of a grammar have one of these names."""
    return np.array([kind in names for kind in kinds], bool)


def below(marked: NDArray[np.bool_], parent: Ints) -> NDArray[np.bool_]:
    """Return of each node whether it or a node above it is marked; the root is its own parent."""
    while parent.any():
        marked = marked | marked[parent]
        parent = parent[parent]
    return marked


def _nearest(parent: Ints, kept: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return of each node the nearest of those kept above it; the root is above itself."""
    step = np.where(kept, np.arange(len(parent)), parent)
    while not kept[step].all():
        step = step[step]
    return step[parent]
