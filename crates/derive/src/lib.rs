//! `#[derive(Differentiable)]`: see `pullback_dual::Differentiable`.
//!
//! The macro writes the walks over a type, `map`, `zip` and `verify`, field by field and variant by variant. The type must be generic
//! over its numbers: its only type parameter, or the one that `#[differentiable(scalar = S)]` names. Fields with
//! `#[differentiable(constant)]` are copied. `#[differentiable(crate = pullback::dual)]` says where the library is,
//! if not at `::pullback_dual`.

use proc_macro2::{Span, TokenStream, TokenTree};
use quote::{ToTokens, format_ident, quote};
use syn::{
    Data, DeriveInput, Error, Fields, GenericArgument, GenericParam, Ident, Member, Path, PathArguments,
    Result, Type, parse_macro_input,
};

/// Implements `Differentiable` for a struct or enum that is generic over its numbers.
#[proc_macro_derive(Differentiable, attributes(differentiable))]
pub fn differentiable(input: proc_macro::TokenStream) -> proc_macro::TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    implementation(&input).unwrap_or_else(Error::into_compile_error).into()
}

fn implementation(input: &DeriveInput) -> Result<TokenStream> {
    let Attributes { scalar, library } = attributes(input)?;
    let number = Ident::new("__Number", Span::mixed_site());
    let name = &input.ident;
    let (_, arguments, conditions) = input.generics.split_for_impl();

    let mut generics = input.generics.clone();
    for parameter in generics.type_params_mut().filter(|p| p.ident == scalar) {
        parameter.bounds.push(syn::parse_quote!(#library::Scalar));
    }
    let (parameters, _, _) = generics.split_for_impl();
    let with = input.generics.params.iter().map(|p| match p {
        GenericParam::Lifetime(p) => {
            let lifetime = &p.lifetime;
            quote!(#lifetime)
        }
        GenericParam::Type(p) if p.ident == scalar => quote!(#number),
        GenericParam::Type(p) => {
            let ident = &p.ident;
            quote!(#ident)
        }
        GenericParam::Const(p) => {
            let ident = &p.ident;
            quote!(#ident)
        }
    });
    let with = quote!(#name<#(#with),*>);

    let (mut maps, mut zips, mut verifications) = (Vec::new(), Vec::new(), Vec::new());
    match &input.data {
        Data::Struct(data) => {
            let Arms { map, zip, verify } = Arms::new(&quote!(#name), &data.fields, &scalar, &library)?;
            maps.push(map);
            zips.push(zip);
            verifications.push(verify);
        }
        Data::Enum(data) => {
            for variant in &data.variants {
                let ident = &variant.ident;
                let path = quote!(#name::#ident);
                let Arms { map, zip, verify } = Arms::new(&path, &variant.fields, &scalar, &library)?;
                maps.push(map);
                zips.push(zip);
                verifications.push(verify);
            }
            if data.variants.is_empty() {
                return Err(Error::new_spanned(
                    name,
                    "an enum without variants has no values to differentiate",
                ));
            }
            if data.variants.len() > 1 {
                let names = data.variants.iter().map(|v| {
                    let ident = &v.ident;
                    let text = ident.to_string();
                    quote!(#name::#ident { .. } => #text,)
                });
                let names: Vec<TokenStream> = names.collect();
                zips.push(quote! {
                    (__this, __other) => {
                        let __expected = match __this { #(#names)* };
                        let __found = match __other { #(#names)* };
                        ::core::result::Result::Err(#library::mismatch(__expected, __found))
                    }
                });
            }
        }
        Data::Union(_) => {
            return Err(Error::new_spanned(name, "a union cannot be differentiated: use an enum"));
        }
    }
    Ok(quote! {
        #[automatically_derived]
        impl #parameters #library::Differentiable<#scalar> for #name #arguments #conditions {
            type With<#number: #library::Scalar> = #with;
            #[allow(unused_variables)]
            fn map<#number: #library::Scalar, __F: ::core::ops::FnMut(&#scalar) -> #number>(
                &self,
                __f: &mut __F,
            ) -> #with {
                match self { #(#maps)* }
            }
            #[allow(unused_variables)]
            fn zip<#number: #library::Scalar, __F: ::core::ops::FnMut(&#scalar, &#number)>(
                &self,
                __other: &#with,
                __f: &mut __F,
            ) -> ::core::result::Result<(), #library::Error> {
                match (self, __other) { #(#zips)* }
            }
            #[allow(unused_variables)]
            fn verify(&self) {
                match self { #(#verifications)* }
            }
        }
    })
}

/// The arms of the walks for one constructor.
struct Arms {
    map: TokenStream,
    zip: TokenStream,
    verify: TokenStream,
}

impl Arms {
    fn new(path: &TokenStream, fields: &Fields, scalar: &Ident, library: &Path) -> Result<Arms> {
        let (mut members, mut left, mut right) = (Vec::new(), Vec::new(), Vec::new());
        let (mut mapped, mut zipped, mut verified) = (Vec::new(), Vec::new(), Vec::new());
        for (i, field) in fields.iter().enumerate() {
            let (x, y) = (format_ident!("__x{i}"), format_ident!("__y{i}"));
            members.push(match &field.ident {
                Some(ident) => Member::Named(ident.clone()),
                None => Member::Unnamed(i.into()),
            });
            if is_constant(field)? {
                mapped.push(quote!(::core::clone::Clone::clone(#x)));
            } else {
                mapped.push(map(&field.ty, &quote!(#x), scalar, library));
                zipped.push(zip(&field.ty, &quote!(#x), &quote!(#y), scalar, library));
                verified.push(verify(&field.ty, &quote!(#x), scalar, library));
            }
            left.push(x);
            right.push(y);
        }
        Ok(Arms {
            map: quote!(#path { #(#members: #left),* } => #path { #(#members: #mapped),* },),
            zip: quote! {
                (#path { #(#members: #left),* }, #path { #(#members: #right),* }) => {
                    #(#zipped)*
                    ::core::result::Result::Ok(())
                }
            },
            verify: quote!(#path { #(#members: #left),* } => { #(#verified)* }),
        })
    }
}

/// A field's type as the macro sees it: what holds boxes is walked here, since a trait cannot be implemented for both numbers and
/// boxes; everything else by the trait.
enum Shape<'a> {
    Box(&'a Type),
    Vec(&'a Type),
    Option(&'a Type),
    Tuple(Vec<&'a Type>),
    Other,
}

fn shape(ty: &Type) -> Shape<'_> {
    if !has_box(ty) {
        return Shape::Other;
    }
    match ty {
        Type::Paren(inner) => shape(&inner.elem),
        Type::Group(inner) => shape(&inner.elem),
        Type::Tuple(tuple) => Shape::Tuple(tuple.elems.iter().collect()),
        Type::Path(path) => {
            let Some(last) = path.path.segments.last() else { return Shape::Other };
            let PathArguments::AngleBracketed(arguments) = &last.arguments else { return Shape::Other };
            let Some(GenericArgument::Type(inner)) = arguments.args.first() else { return Shape::Other };
            match last.ident.to_string().as_str() {
                "Box" => Shape::Box(inner),
                "Vec" => Shape::Vec(inner),
                "Option" => Shape::Option(inner),
                _ => Shape::Other,
            }
        }
        _ => Shape::Other,
    }
}

/// Whether `Box` occurs in a type.
fn has_box(ty: &Type) -> bool {
    fn within(tokens: TokenStream) -> bool {
        tokens.into_iter().any(|token| match token {
            TokenTree::Ident(ident) => ident == "Box",
            TokenTree::Group(group) => within(group.stream()),
            _ => false,
        })
    }
    within(ty.to_token_stream())
}

/// The value at the reference `x` with other numbers.
fn map(ty: &Type, x: &TokenStream, scalar: &Ident, library: &Path) -> TokenStream {
    match shape(ty) {
        Shape::Box(inner) => {
            let inner = map(inner, &quote!((&**#x)), scalar, library);
            quote!(::std::boxed::Box::new(#inner))
        }
        Shape::Vec(inner) => {
            let inner = map(inner, &quote!(__x), scalar, library);
            quote!(#x.iter().map(|__x| #inner).collect::<::std::vec::Vec<_>>())
        }
        Shape::Option(inner) => {
            let inner = map(inner, &quote!(__x), scalar, library);
            quote!(match #x {
                ::core::option::Option::Some(__x) => ::core::option::Option::Some(#inner),
                ::core::option::Option::None => ::core::option::Option::None,
            })
        }
        Shape::Tuple(inner) => {
            let parts = inner.iter().enumerate().map(|(i, ty)| {
                let place = syn::Index::from(i);
                map(ty, &quote!((&#x.#place)), scalar, library)
            });
            quote!((#(#parts,)*))
        }
        Shape::Other => quote!(<#ty as #library::Differentiable<#scalar>>::map(#x, __f)),
    }
}

/// Visits the values at the references `x` and `y` together.
fn zip(ty: &Type, x: &TokenStream, y: &TokenStream, scalar: &Ident, library: &Path) -> TokenStream {
    match shape(ty) {
        Shape::Box(inner) => zip(inner, &quote!((&**#x)), &quote!((&**#y)), scalar, library),
        Shape::Vec(inner) => {
            let inner = zip(inner, &quote!(__x), &quote!(__y), scalar, library);
            quote! {
                if #x.len() != #y.len() {
                    return ::core::result::Result::Err(#library::mismatch(#x.len(), #y.len()));
                }
                for (__x, __y) in #x.iter().zip(#y.iter()) { #inner }
            }
        }
        Shape::Option(inner) => {
            let inner = zip(inner, &quote!(__x), &quote!(__y), scalar, library);
            quote! {
                match (#x, #y) {
                    (::core::option::Option::Some(__x), ::core::option::Option::Some(__y)) => { #inner }
                    (::core::option::Option::None, ::core::option::Option::None) => {}
                    _ => return ::core::result::Result::Err(#library::mismatch("the same of Some and None", "the other")),
                }
            }
        }
        Shape::Tuple(inner) => {
            let parts = inner.iter().enumerate().map(|(i, ty)| {
                let place = syn::Index::from(i);
                zip(ty, &quote!((&#x.#place)), &quote!((&#y.#place)), scalar, library)
            });
            quote!(#(#parts)*)
        }
        Shape::Other => quote!(<#ty as #library::Differentiable<#scalar>>::zip(#x, #y, __f)?;),
    }
}

/// Asks the implementations inside of the value at the reference `x` whether they are right.
fn verify(ty: &Type, x: &TokenStream, scalar: &Ident, library: &Path) -> TokenStream {
    match shape(ty) {
        Shape::Box(inner) => verify(inner, &quote!((&**#x)), scalar, library),
        Shape::Vec(inner) | Shape::Option(inner) => {
            let inner = verify(inner, &quote!(__x), scalar, library);
            quote!(for __x in #x.iter() { #inner })
        }
        Shape::Tuple(inner) => {
            let parts = inner.iter().enumerate().map(|(i, ty)| {
                let place = syn::Index::from(i);
                verify(ty, &quote!((&#x.#place)), scalar, library)
            });
            quote!(#(#parts)*)
        }
        Shape::Other => quote!(<#ty as #library::Differentiable<#scalar>>::verify(#x);),
    }
}

/// Whether a field is marked as data.
fn is_constant(field: &syn::Field) -> Result<bool> {
    let mut constant = false;
    for attribute in field.attrs.iter().filter(|a| a.path().is_ident("differentiable")) {
        attribute.parse_nested_meta(|meta| {
            if meta.path.is_ident("constant") {
                constant = true;
                Ok(())
            } else {
                Err(meta.error("of a field: only `constant` is known"))
            }
        })?;
    }
    Ok(constant)
}

/// What the type's attributes say.
struct Attributes {
    /// The type parameter that stands for the numbers.
    scalar: Ident,
    /// Where the library is.
    library: Path,
}

fn attributes(input: &DeriveInput) -> Result<Attributes> {
    let mut named: Option<Ident> = None;
    let mut library: Path = syn::parse_quote!(::pullback_dual);
    for attribute in input.attrs.iter().filter(|a| a.path().is_ident("differentiable")) {
        attribute.parse_nested_meta(|meta| {
            if meta.path.is_ident("scalar") {
                named = Some(meta.value()?.parse()?);
                Ok(())
            } else if meta.path.is_ident("crate") {
                library = meta.value()?.call(Path::parse_mod_style)?;
                Ok(())
            } else {
                Err(meta.error("of a type: only `scalar = S` and `crate = path` are known"))
            }
        })?;
    }
    let parameters: Vec<&Ident> = input.generics.type_params().map(|p| &p.ident).collect();
    let scalar = match (named, parameters.as_slice()) {
        (Some(named), all) if all.contains(&&named) => named,
        (Some(named), _) => {
            return Err(Error::new_spanned(&named, format!("`{named}` is no type parameter of this type")));
        }
        (None, [one]) => (*one).clone(),
        (None, []) => {
            return Err(Error::new_spanned(
                &input.ident,
                format!(
                    "a differentiable type is generic over its numbers: write `{}<S>` and `S` for those that are variables",
                    input.ident
                ),
            ));
        }
        (None, _) => {
            return Err(Error::new_spanned(
                &input.generics,
                "which parameter stands for the numbers? say so by `#[differentiable(scalar = S)]`",
            ));
        }
    };
    Ok(Attributes { scalar, library })
}
